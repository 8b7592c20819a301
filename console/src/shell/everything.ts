/** What the palette finds, and how. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { agentsQuery } from '../api/agents.ts';
import { apiKeysQuery } from '../api/api-keys.ts';
import { schedulesQuery } from '../api/schedules.ts';
import { skillsQuery } from '../api/skills.ts';
import { triggersQuery } from '../api/triggers.ts';
import { webhooksQuery } from '../api/webhooks.ts';
import { timetableText } from '../schedules/zones.ts';
import type { LucideIcon } from '../ui/Icon.tsx';
import {
  Bot,
  Brain,
  CalendarClock,
  KeyRound,
  ListChecks,
  LogOut,
  MessagesSquare,
  Monitor,
  Moon,
  Play,
  Plus,
  Puzzle,
  Send,
  Sun,
  Zap,
} from '../ui/icons.tsx';
import { listedSkillPath, skillPath } from '../ui/Pickers.tsx';
import { creating } from '../ui/useCreating.ts';
import { hasWords } from '../ui/words.ts';
import { leaveSignedOut } from './leave.ts';
import { placeGroups } from './places.ts';
import { type Needed, useIsAdministrator, useMayOpen } from './session.ts';
import { useTheme } from './theme.ts';

export interface Found {
  readonly key: string;
  readonly label: string;
  /** What kind of thing it is. */
  readonly about: string;
  readonly icon: LucideIcon;
  /** Its link or its action. */
  readonly go:
    | { readonly to: string; readonly search?: Readonly<Record<string, string>> }
    | (() => void);
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** More than one looks through. */
const shownMax = 40;

/** All that has a name. */
export function useEverything(): readonly Found[] {
  const places = usePlaces();
  const acts = useActs();
  const things = useThings();
  return useMemo(() => [...places, ...acts, ...things], [places, acts, things]);
}

function usePlaces(): readonly Found[] {
  const isAdministrator = useIsAdministrator();
  const mayOpen = useMayOpen();
  return useMemo(
    () =>
      placeGroups
        .filter(({ isAdmin }) => !isAdmin || isAdministrator)
        .flatMap(({ places }) =>
          places.filter(mayOpen).map(({ label, icon, to }) => ({
            key: to,
            label,
            icon,
            about: 'Page',
            go: { to },
          })),
        ),
    [isAdministrator, mayOpen],
  );
}

const makings: readonly (Needed & { label: string; to: string; isAdmin?: boolean })[] = [
  { label: 'New agent', to: '/agents' },
  { label: 'New schedule', to: '/schedules', area: 'schedules' },
  { label: 'New trigger', to: '/triggers' },
  { label: 'New webhook', to: '/webhooks', area: 'webhooks' },
  { label: 'New API key', to: '/api-keys', isAdmin: true },
];
const looks = [
  { theme: 'light', icon: Sun },
  { theme: 'dark', icon: Moon },
  { theme: 'system', icon: Monitor },
] as const;

function useActs(): readonly Found[] {
  const isAdministrator = useIsAdministrator();
  const mayOpen = useMayOpen();
  const [, setTheme] = useTheme();
  return useMemo(
    () =>
      [
        ...makings
          .filter((one) => (!one.isAdmin || isAdministrator) && mayOpen(one))
          .map(({ label, to }) => ({ label, icon: Plus, go: { to, search: creating } })),
        ...looks.map(({ theme, icon }) => ({
          label: `Appearance: ${theme}`,
          icon,
          go: () => setTheme(theme),
        })),
        {
          label: 'Sign out',
          icon: LogOut,
          go: () => void leaveSignedOut(),
        },
      ].map((act) => ({ ...act, key: act.label, about: 'Action' })),
    [isAdministrator, mayOpen, setTheme],
  );
}

function useThings(): readonly Found[] {
  const isAdministrator = useIsAdministrator();
  const skills = useQuery(skillsQuery()).data;
  const agents = useQuery(agentsQuery()).data;
  const keys = useQuery({ ...apiKeysQuery(), enabled: isAdministrator }).data;
  const [schedules, webhooks, triggers] = useQueries({
    queries: [schedulesQuery(), webhooksQuery(), triggersQuery()],
  });
  return useMemo(
    () => [
      ...(skills ?? []).flatMap((skill) => {
        const { id, display_name } = skill;
        const path = listedSkillPath(skill);
        const to = `/skills/${path}`;
        const search = { tab: 'run' };
        return [
          {
            key: `run ${id}`,
            label: `Run ${display_name}`,
            about: path,
            icon: Play,
            go: { to, search },
          },
          { key: id, label: path, about: 'Skill', icon: Puzzle, go: { to } },
        ];
      }),
      ...(agents?.data ?? []).map(({ id, name }) => ({
        key: `agent ${id}`,
        label: name === id || name === '' ? id : `${name} (${id})`,
        about: 'Agent',
        icon: Bot,
        go: { to: `/agents/${id}` },
      })),
      ...(schedules.data ?? []).map((schedule) => ({
        key: schedule.id,
        label: `${skillPath(schedule)} at ${timetableText(schedule)}`,
        about: 'Schedule',
        icon: CalendarClock,
        go: { to: `/schedules/${schedule.id}` },
      })),
      ...(webhooks.data ?? []).map(({ id, url }) => ({
        key: id,
        label: url,
        about: 'Webhook',
        icon: Send,
        go: { to: `/webhooks/${id}` },
      })),
      ...(triggers.data?.data ?? []).map(({ id, name }) => ({
        key: id,
        label: name,
        about: 'Trigger',
        icon: Zap,
        go: { to: `/triggers/${id}` },
      })),
      ...(keys ?? []).map(({ id, client_name, organization_id }) => ({
        key: id,
        label: client_name,
        about: `API key of ${organization_id}`,
        icon: KeyRound,
        go: { to: `/api-keys/${id}` },
      })),
    ],
    [skills, agents, schedules.data, webhooks.data, triggers.data, keys],
  );
}

/**
 * Those in which every word occurs; what begins with the text comes first, and where else one could look
 * for it comes last.
 */
export function search(all: readonly Found[], text: string): Found[] {
  const query = text.trim();
  if (uuid.test(query)) return idOf(query.toLowerCase());
  const rank = ({ label }: Found) => (label.toLowerCase().startsWith(query.toLowerCase()) ? 0 : 1);
  const found = all
    .filter(({ label, about }) => hasWords(`${label} ${about}`, query))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, shownMax);
  return query === '' ? found : [...found, ...elsewhere(query)];
}

const idOf = (id: string): Found[] => [
  { key: 'job', label: id, about: 'Job', icon: ListChecks, go: { to: `/jobs/${id}` } },
  {
    key: 'conversation',
    label: id,
    about: 'Conversation',
    icon: MessagesSquare,
    go: { to: `/conversations/${id}` },
  },
];

const elsewhere = (text: string): Found[] => [
  {
    key: 'memories with it',
    label: `Search memories for “${text}”`,
    about: 'Memories',
    icon: Brain,
    go: { to: '/memories', search: { q: text } },
  },
  {
    key: 'conversations of it',
    label: `Show what user “${text}” has begun`,
    about: 'Conversations',
    icon: MessagesSquare,
    go: { to: '/conversations', search: { user_id: text } },
  },
];
