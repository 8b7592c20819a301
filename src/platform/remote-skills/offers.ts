/**
 * What a service offers now, from what it shows to each viewer: by the name of a skill the definitions of its tool, each
 * with the organizations whose accounts are shown it. The names of one viewer's tools do not depend on another's.
 */

import { checkBoundedSchema } from '../../kernel/bounded-schema.ts';
import type { JsonSchema } from '../../kernel/json-schema.ts';
import { SchemaError } from '../../kernel/schema-rules.ts';
import { isCleanText } from '../../kernel/text.ts';
import { digestOfTool, type Offer } from './compare-tools.ts';
import { shownSchema } from './definitions.ts';
import type { LeftOutTool, RemoteTool, View } from './remote-kind.ts';
import { nameTools } from './skill-names.ts';

const descriptionBytesMax = 16_384;

export interface Offers {
  readonly offers: ReadonlyMap<string, readonly Offer[]>;
  /** The tools that cannot be skills, each once, and why. */
  readonly leftOut: readonly LeftOutTool[];
}

/** `known` are the digests of the stored versions, which were checked when they were stored. */
export async function offersIn(
  views: readonly View[],
  known: ReadonlySet<string>,
): Promise<Offers> {
  const offers = new Map<string, Map<string, Offer>>();
  const leftOut = new Map<string, LeftOutTool>();
  const faults = new Map<string, string | undefined>();
  for (const { viewer, tools, leftOut: unusable } of views) {
    const { named, leftOut: unnamed } = nameTools(tools);
    for (const one of [...unusable, ...unnamed]) leftOut.set(one.tool, one);
    for (const [name, tool] of named) {
      const digest = digestOfTool(tool);
      if (!known.has(digest) && !faults.has(digest)) {
        faults.set(digest, faultOf(tool));
        // Yields: checking a schema takes a millisecond or more, and a service may have hundreds.
        await new Promise(setImmediate);
      }
      const fault = faults.get(digest);
      if (fault === undefined) addOffer(offers, name, { tool, digest }, viewer);
      else leftOut.set(tool.tool, { tool: tool.tool, reason: `${tool.tool} ${fault}` });
    }
  }
  return {
    offers: new Map([...offers].map(([name, byDigest]) => [name, [...byDigest.values()]])),
    leftOut: [...leftOut.values()],
  };
}

function addOffer(
  offers: Map<string, Map<string, Offer>>,
  name: string,
  { tool, digest }: Pick<Offer, 'tool' | 'digest'>,
  viewer: View['viewer'],
): void {
  const byDigest = offers.get(name) ?? new Map<string, Offer>();
  offers.set(name, byDigest);
  const before = byDigest.get(digest)?.viewers ?? [];
  byDigest.set(digest, { tool, digest, viewers: [...before, viewer] });
}

function faultOf({ description, input, output }: RemoteTool): string | undefined {
  if (!isCleanText(description)) return 'has a description that is not well-formed Unicode';
  if (Buffer.byteLength(description) > descriptionBytesMax) {
    return `has a description of more than ${descriptionBytesMax} bytes`;
  }
  return (
    schemaFault('input', input) ?? (output === null ? undefined : schemaFault('output', output))
  );
}

function schemaFault(what: string, schema: JsonSchema): string | undefined {
  try {
    checkBoundedSchema(schema);
    // As the skill has it.
    checkBoundedSchema(shownSchema(schema));
    return undefined;
  } catch (error) {
    if (error instanceof SchemaError) return `has an ${what} schema that ${error.message}`;
    throw error;
  }
}
