/** Where one can go, in the order of the menu. */

import type { ComponentType } from 'react';
import { PendingCount } from '../approvals/PendingCount.tsx';
import type { LucideIcon } from '../ui/Icon.tsx';
import {
  Activity,
  Bot,
  Brain,
  Cable,
  CalendarClock,
  FileJson,
  Hourglass,
  KeyRound,
  ListChecks,
  MessagesSquare,
  Plug,
  Puzzle,
  Send,
  Server,
  UserCheck,
  UserKey,
  Zap,
} from '../ui/icons.tsx';
import type { Needed } from './session.ts';

export interface Place extends Needed {
  readonly label: string;
  readonly to: string;
  readonly icon: LucideIcon;
  /** Beside its name: how much there is to do. */
  readonly Count?: ComponentType;
}

export interface PlaceGroup {
  readonly label: string;
  readonly places: readonly Place[];
  /** For the administrator alone. */
  readonly isAdmin?: boolean;
}

export const placeGroups: readonly PlaceGroup[] = [
  {
    label: 'Work',
    places: [
      { label: 'Overview', to: '/', icon: Activity },
      { label: 'Skills', to: '/skills', icon: Puzzle, area: 'registry' },
      { label: 'Jobs', to: '/jobs', icon: ListChecks },
      { label: 'Queue', to: '/queue', icon: Hourglass },
      {
        label: 'Approvals',
        to: '/approvals',
        icon: UserCheck,
        scope: 'approvals',
        Count: PendingCount,
      },
    ],
  },
  {
    label: 'Agents',
    places: [
      { label: 'Agents', to: '/agents', icon: Bot },
      {
        label: 'Conversations',
        to: '/conversations',
        icon: MessagesSquare,
        area: 'conversations',
      },
      { label: 'Memories', to: '/memories', icon: Brain, area: 'memories' },
    ],
  },
  {
    label: 'Automation',
    places: [
      { label: 'Schedules', to: '/schedules', icon: CalendarClock, area: 'schedules' },
      { label: 'Triggers', to: '/triggers', icon: Zap },
      { label: 'Webhooks', to: '/webhooks', icon: Send, area: 'webhooks' },
      { label: 'Connect', to: '/connect', icon: Plug },
      { label: 'Accounts', to: '/accounts', icon: UserKey },
    ],
  },
  {
    label: 'Administration',
    isAdmin: true,
    places: [
      { label: 'API keys', to: '/api-keys', icon: KeyRound },
      { label: 'Outside servers', to: '/mcp-servers', icon: Cable },
      { label: 'OpenAPI imports', to: '/openapi-imports', icon: FileJson },
      { label: 'System', to: '/system', icon: Server },
    ],
  },
];
