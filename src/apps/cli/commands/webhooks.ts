/** `skillwright webhooks`: what the platform delivers, and its way to a developer's machine. */
import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import {
  type ApiOptions,
  deleteOne,
  itemsOf,
  type Schema,
  showList,
  showOne,
} from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import type { Forwarded } from '../forward-deliveries.ts';
import { type Io, writeJson } from '../io.ts';
import { clean, styled } from '../print.ts';

interface CreateOptions extends ApiOptions {
  readonly events: string;
  readonly agent: string;
  readonly secret?: string;
}

interface ListenOptions extends ApiOptions {
  readonly forwardTo: string;
  readonly secret?: string;
  readonly agent?: string;
  readonly events?: string;
}

export function addWebhookCommands(program: Command, io: Io): void {
  const webhooks = defineCommand(program, 'webhooks', {
    about: 'list, create and delete webhooks, and forward events to this machine',
    examples: ['webhooks', 'webhooks listen --forward-to http://127.0.0.1:8080/hooks'],
  });
  defineList(webhooks, {
    about: 'list webhooks, newest first',
    examples: ['webhooks list --json'],
  }).action((options: ApiOptions) => listWebhooks(io, options));
  defineApiCommand(webhooks, 'create <url>', {
    about: 'create a webhook; only this command shows its secret',
    examples: ['webhooks create https://example.org/hooks --events skill.completed,skill.failed'],
  })
    .requiredOption('--events <types>', 'the types of events it gets, comma-separated')
    .option('--agent <id>', 'events of this agent, * for all', 'default')
    .option('--secret <secret>', 'what deliveries are signed with; made when left out')
    .action((url: string, options: CreateOptions) => createWebhook(io, url, options));
  defineApiCommand(webhooks, 'delete <webhook>', {
    about: 'delete a webhook; what waits for it is not sent any more',
    examples: ['webhooks delete 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  }).action((id: string, options: ApiOptions) =>
    deleteOne(io, options, { id, path: path`/api/agent-webhooks/${id}` }),
  );
  defineApiCommand(webhooks, 'listen', {
    about:
      'forward events to a local address until Ctrl-C, as webhooks deliver them; needs no webhook',
    examples: [
      'webhooks listen --forward-to http://127.0.0.1:8080/hooks',
      'webhooks listen --forward-to http://127.0.0.1:8080/hooks --secret "$WEBHOOK_SECRET"',
    ],
  })
    .requiredOption('--forward-to <address>', 'where to send them')
    .option('--secret <secret>', 'what they are signed with; made and shown when left out')
    .option('--events <types>', 'these types of events alone, comma-separated')
    .option('--agent <id>', 'events of this agent alone')
    .action((options: ListenOptions) => listen(io, options));
}

function createWebhook(io: Io, url: string, options: CreateOptions): Promise<void> {
  const { agent, events, secret } = options;
  const body = {
    agent_id: agent,
    url,
    events: itemsOf(events),
    ...(secret !== undefined && { secret }),
  };
  return showOne(io, options, {
    ...{ method: 'POST', path: '/api/agent-webhooks', body },
    times: ['created_at', 'updated_at'],
  });
}

function listWebhooks(io: Io, options: ApiOptions): Promise<void> {
  return showList<Schema<'Webhook'>>(io, options, {
    path: '/api/agent-webhooks',
    columns: [
      { title: 'WEBHOOK', of: (one) => one.id },
      { title: 'AGENT', of: (one) => one.agent_id },
      { title: 'ADDRESS', of: (one) => one.url },
      { title: 'EVENTS', of: (one) => one.events },
      { title: 'STATE', of: (one) => (one.active ? 'active' : 'inactive'), as: 'state' },
    ],
  });
}

async function listen(io: Io, options: ListenOptions): Promise<void> {
  const { forwardTo: target, json } = options;
  if (!/^https?:$/.test(URL.parse(target)?.protocol ?? '')) {
    const message = `${target} is no address: expected one such as http://127.0.0.1:8080/hooks`;
    throw new CliError(message, exitCodes.usage);
  }
  const { forwardDeliveries } = await import('../forward-deliveries.ts');
  const client = connect(io, options);
  const secret = options.secret ?? `whsec_${randomBytes(24).toString('base64')}`;
  const { events, agent: agent_id } = options;
  const forwarding = { target, secret, query: { events, agent_id } };
  for await (const one of forwardDeliveries(io, client, forwarding)) {
    if ('forwarded' in one) {
      if (json) writeJson(io, one.forwarded);
      else printForwarded(io, one.forwarded);
      continue;
    }
    const { listening, isFirst } = one;
    if (isFirst && options.secret === undefined) {
      io.stderr.write(`Signed with the secret ${secret}\n`);
    }
    if (isFirst) io.stderr.write(`Forwarding ${listening.events.join(', ')} to ${target}\n`);
    else if (listening.resumed) io.stderr.write('Connected again; nothing was missed\n');
    else io.stderr.write('Connected again after more than a minute: events were missed\n');
  }
}

function printForwarded(io: Io, { event, delivery_id, status, error }: Forwarded): void {
  const isReceived = status !== null && status >= 200 && status < 300;
  const end = error === null ? String(status) : `did not arrive: ${error}`;
  const shown = styled(io.stdout, isReceived ? 'green' : 'red', clean(end));
  io.stdout.write(`${clean(event)}\t${delivery_id}\t${shown}\n`);
}
