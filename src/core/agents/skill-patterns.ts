/** Patterns of skills in agents: what to write in place of one that names a skill without its version. */
import { invalidIn } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';

const fields = ['skills', 'approvals'];
/** Patterns of a field that are looked at; the schema refuses longer lists. */
const patternsMax = 200;

const part = String.raw`\*|[a-z0-9][a-z0-9-]{0,62}`;
const version = String.raw`v[0-9]{1,9}\.[0-9]{1,9}`;
const withoutVersion = new RegExp(`^(${part})/(${part})$`);
const versionLast = new RegExp(`^(${part})/(${part})/(${version})$`);

/** Throws `400 validation_error` with what to write; what else may be wrong with a pattern its JSON Schema says. */
export function refusePatterns(body: unknown): void {
  if (!isObject(body)) return;
  const faults = patternsIn(body).flatMap(([field, pattern]) => {
    const issue = typeof pattern === 'string' ? issueOf(pattern) : null;
    return issue === null ? [] : [{ field, issue }];
  });
  if (faults.length > 0) throw invalidIn(faults);
}

/** The patterns, and whatever else stands in their places, with their fields. */
function patternsIn(body: Record<string, unknown>): [field: string, pattern: unknown][] {
  const listIn = (field: string): unknown[] => {
    const list = body[field];
    return Array.isArray(list) ? list.slice(0, patternsMax) : [];
  };
  const listed = fields.flatMap((field) =>
    listIn(field).map((pattern, i): [string, unknown] => [`${field}.${i}`, pattern]),
  );
  const ruled = listIn('tool_rules').map((rule, i): [string, unknown] => [
    `tool_rules.${i}.tools`,
    isObject(rule) && !isOfAgent(rule['tools']) ? rule['tools'] : undefined,
  ]);
  return [...listed, ...ruled];
}

/** Whether it names an agent, as those of rules may. The skill that gives tasks is most likely meant by its own name. */
const isOfAgent = (pattern: unknown) =>
  typeof pattern === 'string' && pattern !== 'agent/run-task' && /^agent\/[^/*]+$/.test(pattern);

function issueOf(pattern: string): string | null {
  const [, category, name] = withoutVersion.exec(pattern) ?? versionLast.exec(pattern) ?? [];
  if (category === undefined || name === undefined || name === '*') return null;
  const [, , , given = 'v1.0'] = versionLast.exec(pattern) ?? [];
  return `must have the version in the middle: write ${category}/${given}/${name}, or ${category}/*/${name} for all versions`;
}
