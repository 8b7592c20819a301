/**
 * Refuses interfaces of dependencies with more than five fields (CONTRIBUTING.md, "Rules"): what belongs together is a
 * named group. Inherited fields are those of another interface, which is checked where it stands.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const fieldsMax = 5;

export interface Finding {
  readonly line: number;
  readonly name: string;
  readonly fields: number;
}

/** An interface at the top level of a formatted file, with its body. */
const dependencies = /^(?:export )?interface (\w*Deps)\b[^{\n]*\{\n(.*?)^\}/gms;
/** A field or a method of it; what is nested is indented further. */
const field = /^ {2}(?:readonly )?[\w$]+\??[:(<]/gm;

/** The interfaces named `Deps`, or with a name that ends in it, that have too many fields. */
export function findLarge(text: string): Finding[] {
  return [...text.matchAll(dependencies)].flatMap(({ index, 1: name = '', 2: body = '' }) => {
    const fields = body.match(field)?.length ?? 0;
    return fields > fieldsMax
      ? [{ line: text.slice(0, index).split('\n').length, name, fields }]
      : [];
  });
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const files = globSync('{src,packages,scripts}/**/*.{ts,tsx}', {
    cwd: root,
    exclude: (path) => /node_modules|dist|generated/.test(path),
  });
  const findings = files.flatMap((file) =>
    findLarge(readFileSync(join(root, file), 'utf8')).map(
      ({ line, name, fields }) => `${file}:${line}  ${name} has ${fields} fields: group them`,
    ),
  );
  for (const finding of findings) console.error(finding);
  if (findings.length === 0) console.log(`No dependencies of more than ${fieldsMax} fields.`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
