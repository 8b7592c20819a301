/**
 * The port to a kind of remote sources, such as MCP servers: how to discover the tools of a service and how to call one.
 * Everything else, from versions to jobs, is the same for all kinds.
 */

import type { Json } from '../../kernel/json.ts';
import type { JsonSchema } from '../../kernel/json-schema.ts';
import type { Organizations } from './organizations.ts';
import type { RemoteRun } from './remote-run.ts';

/** A remote source, with its secrets decrypted. */
export interface RemoteSource {
  readonly id: string;
  readonly name: string;
  /** Of the kind's own form. */
  readonly settings: Json;
  readonly secrets: Json;
  /** The document that describes it, if the operator gave one; null in calls. */
  readonly document: string | null;
  /** What the last successful refresh recorded of it; empty before the first. */
  readonly about: Json;
  /** The organizations that its skills belong to; null for all. */
  readonly organizations: Organizations;
}

/** A tool, as its service describes it: untrusted. */
export interface RemoteTool {
  /** Its name at the service. */
  readonly tool: string;
  /** The name of its skill; made from `tool` where the kind sets none. */
  readonly skillName?: string;
  readonly title: string | null;
  readonly description: string;
  readonly input: JsonSchema;
  /** Null if the service declares none. */
  readonly output: JsonSchema | null;
  /** How the kind calls it, pinned with its schemas. */
  readonly request?: Json;
  /** What the service says of the tool's effects, to be shown. */
  readonly annotations: Json;
  /** Whether the service says that the tool is idempotent. */
  readonly saysIdempotent: boolean;
}

/** A tool that cannot be a skill, and why: a sentence. */
export interface LeftOutTool {
  readonly tool: string;
  readonly reason: string;
}

/** Who is shown tools: an organization by its account at the service; null for a request without an account. */
export type Viewer = string | null;

/** The tools that a service shows to a viewer. */
export interface View {
  readonly viewer: Viewer;
  readonly tools: readonly RemoteTool[];
  /** Tools that the kind itself cannot use. */
  readonly leftOut: readonly LeftOutTool[];
}

/** What a service offers. */
export interface Discovered {
  readonly views: readonly View[];
  /**
   * The viewers whose present view is known: one of them without a view is shown nothing. The others keep what they were
   * shown before. `all` where the service takes no accounts.
   */
  readonly knownViewers: ReadonlySet<Viewer> | 'all';
  /** What it says of itself, to be shown. */
  readonly about: Json;
  /** Settings that the discovery has learned; stored unless they were changed meanwhile. */
  readonly learned?: Json;
}

/** A service's question to a person: untrusted. */
export interface PersonQuestion {
  /** Unique among the questions of one answer. */
  readonly key: string;
  readonly message: string;
  /** JSON Schema of the form; null for what no form can ask, which `message` says. */
  readonly fields: unknown;
  /** The address that a person is to open, where it asks for that instead of a form. */
  readonly link?: string;
  /** Who asks, and in which call: shown with the message. */
  readonly context: Json & { readonly service: string };
}

/** As the Model Context Protocol has them. */
export type PersonAnswer =
  | { readonly action: 'accept'; readonly content?: Json }
  /** The person refused, or the platform could not ask. */
  | { readonly action: 'decline' }
  /** No person answered in time. */
  | { readonly action: 'cancel' };

/** The result of a call that must be repeated with answers. */
export class RemoteQuestions {
  readonly questions: readonly PersonQuestion[];
  /** Returned to the service unchanged. */
  readonly state: string | null;

  constructor(questions: readonly PersonQuestion[], state: string | null) {
    this.questions = questions;
    this.state = state;
  }
}

/** The answers and the state that a repeated call has. */
export interface RemoteAnswers extends Pick<RemoteQuestions, 'state'> {
  readonly answers: Readonly<Record<string, PersonAnswer>>;
}

/** What a call needs of its tool, as it was pinned. */
export type CalledTool = Pick<RemoteTool, 'input' | 'output' | 'request'> & {
  readonly name: string;
};

export type RemoteFailureCode =
  | 'skill_execution_failed'
  | 'output_invalid'
  | 'missing_credentials'
  | 'upstream_unavailable';

interface RemoteFaultOptions {
  readonly code?: RemoteFailureCode;
  readonly retryable?: boolean;
  readonly hadNoEffect?: boolean;
  readonly retryAfterMs?: number | null;
  readonly asksForAccount?: boolean;
  readonly isOfAccount?: boolean;
  readonly cause?: unknown;
}

/** Questions of one answer of a service, and of one call that is held. */
export const questionsMax = 20;

/** Throws RemoteFault where a service asks too much at once. */
export function requireFewQuestions(count: number): void {
  if (count <= questionsMax) return;
  throw new RemoteFault(`The service asks more than ${questionsMax} questions at once`);
}

/** Why a request to a service failed: one sentence, without secrets. */
export class RemoteFault extends Error {
  readonly code: RemoteFailureCode;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Whether the call certainly had no effect, so that any tool may be called again. */
  readonly hadNoEffect: boolean;
  /** The delay that the service asks for, in milliseconds; else null. */
  readonly retryAfterMs: number | null;
  /** Whether a person has to connect an account at the service first. */
  readonly asksForAccount: boolean;
  /** Whether the fault belongs to the account of one organization, so that other organizations must not see it. */
  readonly isOfAccount: boolean;

  constructor(
    message: string,
    {
      code = 'skill_execution_failed',
      retryable = false,
      hadNoEffect = false,
      retryAfterMs = null,
      asksForAccount = false,
      isOfAccount = false,
      cause,
    }: RemoteFaultOptions = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RemoteFault';
    this.code = code;
    this.retryable = retryable;
    this.hadNoEffect = hadNoEffect;
    this.retryAfterMs = retryAfterMs;
    this.asksForAccount = asksForAccount;
    this.isOfAccount = isOfAccount;
  }
}

export interface RemoteKind {
  /** How it is stored, and what the categories of its skills begin with. */
  readonly kind: string;
  /**
   * Milliseconds after which a call is preceded by another refresh; null where what the service offers cannot
   * change by itself.
   */
  readonly checkEveryMs: number | null;
  /** Whether an output that breaks its tool's schema fails the run. */
  readonly areOutputsChecked: boolean;
  /**
   * Why calls of a tool that was pinned with this request fail now, because of what is set of its source; null where they
   * may succeed. Left out where nothing that is set can do that.
   */
  whyUnusable?(
    source: Pick<RemoteSource, 'settings' | 'about'>,
    request: Json | undefined,
  ): string | null;
  /**
   * Reads the tools, among others with the account of `organizationId`, if it has one. Throws RemoteFault.
   */
  discover(
    source: RemoteSource,
    signal: AbortSignal,
    organizationId: string | null,
  ): Promise<Discovered>;
  /** Calls a tool and returns its output, a JSON value, or RemoteQuestions. Throws RemoteFault. */
  call(source: RemoteSource, tool: CalledTool, input: unknown, run: RemoteRun): Promise<unknown>;
  /** Closes its connections to one source or to all. */
  close(sourceId?: string): Promise<void>;
}
