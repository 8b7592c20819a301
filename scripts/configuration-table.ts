/** Prints the table of docs/configuration.md, which a test holds to the code. */
import { variables } from '../src/core/config/variables.ts';

/** One row for each environment variable. */
export function configurationTable(): string {
  const rows = Object.values(variables).map(
    ({ name, about, default: value }) =>
      `| \`${name}\` | ${value === null ? '' : `\`${value}\``} | ${about} |`,
  );
  return ['| variable | default | what it does |', '| --- | --- | --- |', ...rows].join('\n');
}

if (import.meta.main) process.stdout.write(`${configurationTable()}\n`);
