import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog } from '@base-ui/react/dialog';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import {
  Bot,
  CalendarClock,
  ListChecks,
  type LucideIcon,
  Play,
  Puzzle,
  Send,
  Zap,
} from 'lucide-react';
import { useMemo, useState } from 'react';
import { agentsQuery } from '../api/agents.ts';
import { schedulesQuery } from '../api/schedules.ts';
import { skillsQuery } from '../api/skills.ts';
import { triggersQuery } from '../api/triggers.ts';
import { webhooksQuery } from '../api/webhooks.ts';
import { placeGroups } from './places.ts';
import { useIsAdministrator } from './session.ts';

interface Found {
  readonly key: string;
  readonly label: string;
  readonly about: string;
  readonly icon: LucideIcon;
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** More than one looks through. */
const shownMax = 40;

/** Everything by its name: pages, skills, agents, schedules, webhooks, triggers; a job by its id. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  const all = useEverything();
  const found = useMemo(() => search(all, text), [all, text]);
  function go(item: Found) {
    onClose();
    void navigate({ to: item.to, search: item.search ?? {} });
  }
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-[oklch(15%_0.02_265/45%)]" />
        <Dialog.Popup
          aria-label="Search"
          className="fixed top-[12vh] left-1/2 z-50 flex max-h-[70vh] w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 flex-col overflow-hidden rounded-xl border bg-surface shadow-high"
        >
          <Autocomplete.Root
            open
            inline
            items={found}
            filter={null}
            value={text}
            onValueChange={setText}
            itemToStringValue={(item: Found) => item.label}
            autoHighlight="always"
          >
            <Autocomplete.Input
              aria-label="Search everything"
              placeholder="Go to a page, a skill, an agent, a job by its id…"
              className="h-12 w-full shrink-0 border-b bg-transparent px-4 text-base outline-none"
            />
            <Autocomplete.Empty className="px-4 py-8 text-center text-muted empty:hidden">
              Nothing is called that.
            </Autocomplete.Empty>
            <Autocomplete.List className="min-h-0 overflow-y-auto p-1.5 empty:hidden">
              {(item: Found) => (
                <Autocomplete.Item
                  key={item.key}
                  value={item}
                  onClick={() => go(item)}
                  className="flex cursor-pointer items-center gap-3 rounded-md px-3 py-2 outline-none select-none data-highlighted:bg-accent-soft data-highlighted:text-accent-text"
                >
                  <item.icon className="size-4 shrink-0 text-muted" aria-hidden />
                  <span className="min-w-0 grow truncate">{item.label}</span>
                  <span className="shrink-0 text-xs text-muted">{item.about}</span>
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function useEverything(): readonly Found[] {
  const isAdministrator = useIsAdministrator();
  const skills = useQuery(skillsQuery()).data;
  const agents = useQuery(agentsQuery()).data;
  const [schedules, webhooks, triggers] = useQueries({
    queries: [schedulesQuery(), webhooksQuery(), triggersQuery()],
  });
  return useMemo(
    () => [
      ...placeGroups
        .filter(({ isAdmin }) => !isAdmin || isAdministrator)
        .flatMap(({ places }) =>
          places.map((place) => ({ ...place, key: place.to, about: 'Page' })),
        ),
      ...(skills ?? []).flatMap(({ id, category, version, skill_name, display_name }) => {
        const to = `/skills/${category}/${version}/${skill_name}`;
        return [
          {
            key: `run ${id}`,
            label: `Run ${display_name}`,
            about: `${category}/${version}/${skill_name}`,
            icon: Play,
            to,
            search: { tab: 'run' },
          },
          {
            key: id,
            label: `${category}/${version}/${skill_name}`,
            about: 'Skill',
            icon: Puzzle,
            to,
          },
        ];
      }),
      ...(agents?.data ?? []).map(({ id, name }) => ({
        key: `agent ${id}`,
        label: name === id || name === '' ? id : `${name} (${id})`,
        about: 'Agent',
        icon: Bot,
        to: `/agents/${id}`,
      })),
      ...(schedules.data ?? []).map(({ id, skill_name, cron_expression }) => ({
        key: id,
        label: `${skill_name} at ${cron_expression}`,
        about: 'Schedule',
        icon: CalendarClock,
        to: `/schedules/${id}`,
      })),
      ...(webhooks.data ?? []).map(({ id, url }) => ({
        key: id,
        label: url,
        about: 'Webhook',
        icon: Send,
        to: `/webhooks/${id}`,
      })),
      ...(triggers.data?.data ?? []).map(({ id, name }) => ({
        key: id,
        label: name,
        about: 'Trigger',
        icon: Zap,
        to: `/triggers/${id}`,
      })),
    ],
    [isAdministrator, skills, agents, schedules.data, webhooks.data, triggers.data],
  );
}

/** Those in which every word occurs; what begins with the text comes first. */
function search(all: readonly Found[], text: string): Found[] {
  const wanted = text.trim().toLowerCase();
  if (uuid.test(wanted)) {
    return [
      { key: 'job', label: wanted, about: 'Job', icon: ListChecks, to: `/jobs/${wanted}` },
      {
        key: 'conversation',
        label: wanted,
        about: 'Conversation',
        icon: ListChecks,
        to: `/conversations/${wanted}`,
      },
    ];
  }
  const words = wanted.split(/\s+/);
  const rank = ({ label }: Found) => (label.toLowerCase().startsWith(wanted) ? 0 : 1);
  return all
    .filter(({ label, about }) =>
      words.every((word) => `${label} ${about}`.toLowerCase().includes(word)),
    )
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, shownMax);
}
