/** Opens the port for a debugger from within a child, once the child that had it before has ended. */
import { open } from 'node:inspector';
import { connect } from 'node:net';

const lookEveryMs = 50;

export function openInspector(port: number): void {
  const probe = connect(port, '127.0.0.1');
  probe.once('connect', () => {
    probe.destroy();
    setTimeout(openInspector, lookEveryMs, port).unref();
  });
  probe.once('error', () => open(port, '127.0.0.1'));
}
