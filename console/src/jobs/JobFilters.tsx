import { useQuery } from '@tanstack/react-query';
import { skillsQuery } from '../api/skills.ts';
import { FilterChip, FilterSelect, Filters } from '../ui/Filters.tsx';
import { AgentFilter, listedSkillPath } from '../ui/Pickers.tsx';
import { sourceOptions } from './words.ts';

/** The words of the page's url that narrow the list down. */
export interface JobSearch {
  status?: string;
  skill?: string;
  agent_id?: string;
  trigger_type?: string;
  conversation_id?: string;
  api_key_id?: string;
  user_id?: string;
  since?: string;
}

const hour = 3_600_000;
/** The word in the url, and how long ago that is. */
export const windows: Readonly<Record<string, { label: string; ms: number }>> = {
  '15m': { label: 'last 15 minutes', ms: hour / 4 },
  '1h': { label: 'last hour', ms: hour },
  '24h': { label: 'last 24 hours', ms: 24 * hour },
  '7d': { label: 'last 7 days', ms: 7 * 24 * hour },
};
const statuses = ['queued', 'active', 'waiting', 'completed', 'failed', 'cancelled'];
const plain = (values: readonly string[]) => values.map((value) => ({ value }));

export function JobFilters({
  search,
  onSearch,
  clear,
}: {
  search: JobSearch;
  onSearch: (change: { [K in keyof JobSearch]: JobSearch[K] | undefined }) => void;
  clear: (() => void) | undefined;
}) {
  const skills = useQuery(skillsQuery()).data ?? [];
  const paths = skills.map(listedSkillPath);
  return (
    <Filters label="Filter jobs" clear={clear}>
      <FilterSelect
        label="Status"
        value={search.status}
        onValue={(status) => onSearch({ status })}
        options={plain(statuses)}
      />
      <FilterSelect
        label="Skill"
        value={search.skill}
        onValue={(skill) => onSearch({ skill })}
        options={plain(paths)}
      />
      <AgentFilter value={search.agent_id} onValue={(agent_id) => onSearch({ agent_id })} />
      <FilterSelect
        label="Source"
        value={search.trigger_type}
        onValue={(trigger_type) => onSearch({ trigger_type })}
        options={sourceOptions}
      />
      <FilterSelect
        label="Accepted"
        value={search.since}
        onValue={(since) => onSearch({ since })}
        options={Object.entries(windows).map(([value, { label }]) => ({ value, label }))}
      />
      {search.conversation_id && (
        <FilterChip
          label="Conversation"
          value={search.conversation_id}
          onClear={() => onSearch({ conversation_id: undefined })}
        />
      )}
      {search.user_id && (
        <FilterChip
          label="User"
          value={search.user_id}
          onClear={() => onSearch({ user_id: undefined })}
        />
      )}
      {search.api_key_id && (
        <FilterChip
          label="API key"
          value={search.api_key_id}
          onClear={() => onSearch({ api_key_id: undefined })}
        />
      )}
    </Filters>
  );
}
