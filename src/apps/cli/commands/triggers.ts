/** `skillwright triggers`: addresses that start runs when they are called from outside. */
import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import {
  type ApiOptions,
  deleteOne,
  type ListOptions,
  type Schema,
  showList,
  showOne,
} from '../api-answers.ts';
import { path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList, withPage } from '../define-command.ts';
import type { Io } from '../io.ts';
import { readSkillInput, skillFields } from '../skill-input.ts';

interface CreateOptions extends ApiOptions {
  readonly agent: string;
  readonly name?: string;
  readonly priority?: string;
}

interface CallOptions extends ApiOptions {
  readonly signingSecret?: string;
}

export function addTriggerCommands(program: Command, io: Io): void {
  const triggers = defineCommand(program, 'triggers', {
    about: 'list, create, show and delete triggers, call one as its sender would',
    examples: ['triggers', 'triggers call TOKEN order=42'],
  });
  withPage(
    defineList(triggers, {
      about: 'list triggers, newest first',
      examples: ['triggers list --json'],
    }),
  ).action((options: ListOptions) => listTriggers(io, options));
  defineApiCommand(triggers, 'show <trigger>', {
    about: 'show a trigger; its token was shown only when it was created',
    examples: ['triggers show 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  }).action((id: string, options: ApiOptions) =>
    showOne(io, options, {
      ...{ method: 'GET', path: path`/api/agent-triggers/${id}` },
      times: ['created_at', 'updated_at'],
    }),
  );
  defineApiCommand(triggers, 'create <skill> [fields...]', {
    about: 'create a trigger; only this command shows its url; further fields as the input of run',
    examples: [
      'triggers create text/v1.0/word-count --name orders',
      `triggers create text/v1.0/word-count --name orders mapping='{"text": body.note}'`,
    ],
  })
    .option('--agent <id>', 'the agent that runs it', 'default')
    .option('--name <name>', 'what lists show; the skill when left out')
    .option('--priority <priority>', "of its jobs: high, normal or low; the agent's if omitted")
    .action((skill: string, words: string[], options: CreateOptions) =>
      createTrigger(io, { skill, words, options }),
    );
  defineApiCommand(triggers, 'delete <trigger>', {
    about: 'delete a trigger; its address answers 404 at once',
    examples: ['triggers delete 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11'],
  }).action((id: string, options: ApiOptions) =>
    deleteOne(io, options, { id, path: path`/api/agent-triggers/${id}` }),
  );
  defineApiCommand(triggers, 'call <token> [body...]', {
    about: 'call a trigger by its token or its url; the body as the input of run',
    examples: [
      'triggers call TOKEN order=42',
      'triggers call TOKEN @payload.json --signing-secret "$SECRET"',
    ],
  })
    .option('--signing-secret <secret>', 'sign the call with it, as x-hub-signature-256')
    .action((token: string, words: string[], options: CallOptions) =>
      callTrigger(io, { token, words, options }),
    );
}

async function createTrigger(
  io: Io,
  { skill, words, options }: { skill: string; words: readonly string[]; options: CreateOptions },
): Promise<void> {
  const fields = await readSkillInput(io, words);
  const body = {
    name: skill,
    ...(fields as object),
    ...(options.name !== undefined && { name: options.name }),
    ...(options.priority !== undefined && { priority: options.priority }),
    agent_id: options.agent,
    ...skillFields(skill),
  };
  await showOne(io, options, {
    ...{ method: 'POST', path: '/api/agent-triggers', body },
    times: ['created_at', 'updated_at'],
  });
}

function listTriggers(io: Io, options: ListOptions): Promise<void> {
  return showList<Schema<'AgentTrigger'>>(io, options, {
    path: '/api/agent-triggers',
    columns: [
      { title: 'TRIGGER', of: (one) => one.id },
      { title: 'NAME', of: (one) => one.name },
      { title: 'AGENT', of: (one) => one.agent_id },
      { title: 'STARTS', of: startedBy },
      { title: 'STATE', of: (one) => (one.active ? 'active' : 'inactive'), as: 'state' },
    ],
  });
}

function startedBy({
  event,
  skill_category,
  skill_version,
  skill_name,
}: Schema<'AgentTrigger'>): string {
  return event ? `event ${event.name}` : `${skill_category}/${skill_version}/${skill_name}`;
}

async function callTrigger(
  io: Io,
  { token, words, options }: { token: string; words: readonly string[]; options: CallOptions },
): Promise<void> {
  // Sent without the key of the profile, because a sender has no key.
  const url = URL.parse(token);
  const target = url === null ? options : { ...options, url: url.origin };
  const body = await readSkillInput(io, words);
  await showOne(io, target, {
    method: 'POST',
    path: url?.pathname ?? path`/api/webhooks/agent/${token}`,
    body,
    headers: {
      'idempotency-key': randomUUID(),
      ...(await signature(options.signingSecret, JSON.stringify(body))),
    },
  });
}

async function signature(
  secret: string | undefined,
  body: string,
): Promise<Record<string, string>> {
  if (secret === undefined) return {};
  const { bodySignature } = await import('../../../kernel/webhook-signature.ts');
  return { 'x-hub-signature-256': `sha256=${bodySignature(secret, body)}` };
}
