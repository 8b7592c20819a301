/** The environment, as a start would read it. */
import { type Config, examineConfig, misspeltSettings } from '../../../core/config/config.ts';
import type { Io } from '../io.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'configuration';
const table = 'see docs/configuration.md';

const paths = ['DATA_DIR', 'SKILLS_DIR'];

interface CheckedConfiguration {
  /** Has the default of each setting with a fault. */
  readonly config: Config;
  /** The settings that a start refuses. The checks that need them are left out. */
  readonly faulty: ReadonlySet<string>;
  readonly findings: readonly Finding[];
}

export function checkConfiguration(env: Io['env']): CheckedConfiguration {
  const { config, faults } = examineConfig(env);
  const misspelt = misspeltSettings(env).map(({ name, nearest }) =>
    warning(check, `${name} is not a setting`, `did you mean ${nearest}?`),
  );
  const findings = [
    ...faults.map(({ message }) => fault(check, message, table)),
    ...misspelt,
    ...paths.flatMap((name) => checkSpaces(name, env[name])),
  ];
  return {
    config,
    faulty: new Set(faults.map(({ variable }) => variable)),
    findings: findings.length > 0 ? findings : [ok(check, 'The environment can be read')],
  };
}

/** As a line of a file of settings leaves them behind, or quotes. */
function checkSpaces(name: string, value: string | undefined): Finding[] {
  if (value === undefined || (value === value.trim() && !/^(["']).*\1$/.test(value))) return [];
  const message = `${name}=${JSON.stringify(value)} begins or ends with a space or a quote`;
  return [warning(check, message, 'is it a part of the name?')];
}
