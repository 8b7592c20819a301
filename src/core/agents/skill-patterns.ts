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
  const faults = fields.flatMap((field) => {
    const patterns = body[field];
    if (!Array.isArray(patterns)) return [];
    return patterns.slice(0, patternsMax).flatMap((pattern, i) => {
      const issue = typeof pattern === 'string' ? issueOf(pattern) : null;
      return issue === null ? [] : [{ field: `${field}.${i}`, issue }];
    });
  });
  if (faults.length > 0) throw invalidIn(faults);
}

function issueOf(pattern: string): string | null {
  const [, category, name] = withoutVersion.exec(pattern) ?? versionLast.exec(pattern) ?? [];
  if (category === undefined || name === undefined || name === '*') return null;
  const [, , , given = 'v1.0'] = versionLast.exec(pattern) ?? [];
  return `must have the version in the middle: write ${category}/${given}/${name}, or ${category}/*/${name} for all versions`;
}
