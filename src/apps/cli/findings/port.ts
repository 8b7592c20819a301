/** The address that a start would listen on. */
import type { Config } from '../../../core/config/config.ts';
import { type Finding, fault, ok, warning } from './finding.ts';
import { isOwnPlatform, type Occupant, type Running } from './running.ts';

const check = 'port';

/** `version` is that of this program. */
export function checkPort(config: Config, running: Running, version: string): Finding[] {
  const { host, port, roles } = config;
  if (!roles.has('api')) return [];
  const { occupant } = running;
  switch (occupant.kind) {
    case 'none':
      return [ok(check, port === 0 ? 'The system chooses a free one' : `${host}:${port} is free`)];
    case 'another program':
      return [fault(check, `Port ${port} is in use by another program`, freePort)];
    case 'refused':
      return [cannotListen(config, occupant.code)];
    case 'platform':
      return [checkPlatform(config, occupant, running, version)];
  }
}

const freePort = 'stop it, or set PORT to a free one';

function cannotListen({ host, port }: Config, code: string): Finding {
  if (code === 'EACCES') {
    return fault(check, `This user may not listen on port ${port}`, 'set PORT to one above 1023');
  }
  const message = `${host} cannot be listened on (${code})`;
  return fault(check, message, 'set HOST to an address of this machine');
}

/** That the platform of this data directory has the port is as it should be. */
function checkPlatform(
  config: Config,
  { status, version: itsVersion }: Extract<Occupant, { kind: 'platform' }>,
  running: Running,
  version: string,
): Finding {
  const { isEmbedded, port } = config;
  if (isEmbedded && !isOwnPlatform(config, running)) {
    const message = `Port ${port} is in use by a platform with another DATA_DIR`;
    return fault(check, message, freePort);
  }
  if (status === 'unhealthy') {
    const message = `The platform on port ${port} is unhealthy`;
    return fault(check, message, 'its log says which store it cannot reach');
  }
  if (itsVersion !== version) {
    const message = `The platform on port ${port} is version ${itsVersion}, this is ${version}`;
    return warning('version', message, 'restart it');
  }
  return ok(check, `A platform of version ${version} runs on port ${port}`);
}
