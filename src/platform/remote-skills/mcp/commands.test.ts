import { expect, onTestFinished, test } from 'vitest';
import { actingCommand } from '../../../../test/support/scripted-command.ts';
import type { RemoteSource } from '../remote-kind.ts';
import type { RemoteSkills } from '../state.ts';
import { Commands } from './commands.ts';

test('a call that is given up while its command starts leaves nothing that rejects unseen', async () => {
  const unseen: unknown[] = [];
  const note = (reason: unknown) => void unseen.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const commands = new Commands('1.0.0', {} as RemoteSkills);
  const settings = { url: null, timeout_ms: 60_000, ...actingCommand };
  const source = { id: 'acts', name: 'acts', settings, secrets: {} } as unknown as RemoteSource;
  const call = new AbortController();

  const connecting = commands.connect(source, { organizationId: null }, call.signal);
  call.abort(new Error('given up'));
  await expect(connecting).rejects.toThrow('given up');
  await commands.end();

  // Node tells of such a rejection once all promises have been served.
  await new Promise((resolve) => setImmediate(resolve));
  expect(unseen).toEqual([]);
});
