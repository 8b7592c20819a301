/** The environment, as a start would read it. */
import { type Config, ConfigError, misspeltSettings, readConfig } from '../../config/config.ts';
import type { Io } from '../io.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'configuration';
const table = 'see docs/configuration.md';

/** The configuration is null where a start would refuse it. */
export function checkConfiguration(env: Io['env']): { config: Config | null; findings: Finding[] } {
  const misspelt = misspeltSettings(env).map(({ name, nearest }) =>
    warning(check, `${name} is no setting`, `was ${nearest} meant?`),
  );
  try {
    const config = readConfig(env);
    const valid = ok(check, 'The environment can be read');
    return { config, findings: misspelt.length > 0 ? misspelt : [valid] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [, ...lines] = error.message.split('\n');
    return {
      config: null,
      findings: [...lines.map((line) => fault(check, line.trim(), table)), ...misspelt],
    };
  }
}
