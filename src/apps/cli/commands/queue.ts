/** `skillwright queue`: what waits, and why. */
import type { Command } from 'commander';
import type { ApiOptions, Schema } from '../api-answers.ts';
import { connect } from '../connection.ts';
import { defineApiCommand } from '../define-command.ts';
import { type Io, writeJson } from '../io.ts';
import { printTable } from '../print.ts';
import { requireAdminSecret } from '../profile.ts';

interface QueueOptions extends ApiOptions {
  readonly all?: boolean;
}

type Counts = Pick<
  Schema<'QueueGroup'>,
  'waiting' | 'later' | 'at_least' | 'running' | 'oldest' | 'held_by'
>;
/** A line: a queue or a group. */
type Line = Counts & {
  readonly kind: string;
  readonly name: string;
  readonly limits?: Schema<'QueueGroup'>['limits'];
  readonly paused?: boolean;
};

export function addQueueCommand(program: Command, io: Io): void {
  defineApiCommand(program, 'queue', {
    about: 'show what waits in the queues, and why',
    examples: ['queue', 'queue --all --json'],
  })
    .option('--all', 'of all organizations, with the admin secret')
    .option('--admin-secret <secret>', "the platform's admin secret (ADMIN_SECRET)")
    .action((options: QueueOptions) => showQueue(io, options));
}

async function showQueue(io: Io, options: QueueOptions): Promise<void> {
  const isAll = options.all === true;
  if (isAll) requireAdminSecret(io, options, 'The queues of all organizations are shown');
  const { queue } = connect(io, options);
  const state = isAll ? await queue.getOfAll() : await queue.get();
  if (options.json) return writeJson(io, state);
  const lines = [
    ...state.queues.map((one) => ({ ...one, kind: 'queue', name: one.queue })),
    ...(isAll ? linesOf('organization', state.organizations.data) : []),
    ...linesOf('skill', state.skills.data),
    ...linesOf('agent', state.agents.data, isAll),
  ];
  printTable<Line>(io, lines, [
    { title: 'BY', of: ({ kind }) => kind },
    { title: 'NAME', of: ({ name }) => name },
    { title: 'WAITING', of: ({ waiting, at_least }) => countOf(waiting, at_least) },
    { title: 'RUNNING', of: ({ running }) => running },
    { title: 'LATER', of: ({ later, at_least }) => countOf(later, at_least) },
    { title: 'LIMIT', of: limitsOf },
    { title: 'WAITS SINCE', of: ({ oldest }) => oldest?.since, as: 'time' },
    { title: 'OLDEST', of: ({ oldest }) => oldest?.job_id },
    { title: 'HELD BY', of: ({ held_by }) => held_by.map(({ message }) => message).join(' ') },
  ]);
}

/** `1`, `2 per user`, `3 in 5 s`, `paused`. */
function limitsOf({ kind, limits = [], paused }: Line): string {
  const texts = limits.map(({ limit, per, per_seconds }) => {
    const within = per_seconds === null ? '' : ` in ${per_seconds} s`;
    return `${limit}${within}${per === 'platform' || per === kind ? '' : ` per ${per}`}`;
  });
  return [...(paused ? ['paused'] : []), ...texts].join(', ');
}

/** There may be more than were counted. */
const countOf = (n: number, isAtLeast: boolean) => (isAtLeast ? `${n}+` : n);

function linesOf(
  kind: string,
  groups: readonly Schema<'QueueGroup'>[],
  isNamedInFull = false,
): Line[] {
  return groups.map((group) => ({
    ...group,
    kind,
    name: isNamedInFull ? `${group.organization_id}/${group.name}` : group.name,
  }));
}
