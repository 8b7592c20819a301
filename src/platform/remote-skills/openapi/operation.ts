/** The stored form of an operation of an OpenAPI document: its skill, and its request. */
import type { Json } from '../../../kernel/json.ts';

export const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;

/** Calls by these methods may be made twice (RFC 9110, section 9.2.2). */
const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']);

export function isIdempotentMethod(method: string): boolean {
  return idempotentMethods.has(method);
}

export type ParameterPlace = 'path' | 'query' | 'header' | 'cookie';

/** A parameter of a request, and the member of the input that it is taken from. */
export interface PlannedParameter {
  readonly field: string;
  readonly name: string;
  readonly in: ParameterPlace;
  readonly style: string;
  readonly explode: boolean;
  /** Of a query: whether reserved characters stay as they are. */
  readonly allowReserved: boolean;
  /** Whether the value is sent as JSON. */
  readonly isJson: boolean;
}

export type BodyForm = 'json' | 'form' | 'multipart' | 'text' | 'binary';

/** How a part of a form is sent; a missing field has the default of the form. */
export interface PlannedPart {
  readonly style?: string;
  readonly explode?: boolean;
  readonly contentType?: string;
  readonly isFile?: boolean;
}

export interface PlannedBody {
  readonly form: BodyForm;
  /** The content-type of the request. */
  readonly mediaType: string;
  readonly parts: Readonly<Record<string, PlannedPart>>;
}

/** How an operation is called: pinned with its schemas, so that a changed document changes no accepted skill. */
export interface OperationPlan {
  readonly method: string;
  /** As in the document: `/pets/{petId}`. */
  readonly path: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly parameters: readonly PlannedParameter[];
  readonly body: PlannedBody | null;
  readonly accept: string;
}

export interface Operation {
  /** `GET /pets/{petId}`: unique in its document. */
  readonly tool: string;
  readonly operationId: string | null;
  readonly skillName: string;
  readonly title: string | null;
  readonly description: string;
  readonly input: Json;
  /** Null where the document tells nothing usable of its answers. */
  readonly output: Json | null;
  readonly isDeprecated: boolean;
  readonly plan: OperationPlan;
}

/** Why a document, or one of its operations, cannot be used: one sentence. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
}
