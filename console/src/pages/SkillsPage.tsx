import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { allSkillsQuery, skillsQuery } from '../api/skills.ts';
import { statisticsQuery } from '../api/statistics.ts';
import { useIsAdministrator } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Puzzle } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { listedSkillPath, skillPath } from '../ui/Pickers.tsx';
import { SearchField } from '../ui/SearchField.tsx';
import { Enabled, Tag } from '../ui/Status.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { countText } from '../ui/Time.tsx';
import { hasWords } from '../ui/words.ts';

type Skill = Schema<'ListedSkill'>;

const route = getRouteApi('/shell/skills');

/** Every version that there is, by category; deprecated ones are for the administrator to see. */
export function SkillsPage() {
  const { q = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const isAdministrator = useIsAdministrator();
  const query = useQuery(isAdministrator ? allSkillsQuery() : skillsQuery());
  const runs = useRuns();
  const search = (text: string) =>
    void navigate({ search: text === '' ? {} : { q: text }, replace: true });
  return (
    <Page
      title="Skills"
      actions={
        <SearchField label="Search skills" value={q} onValue={search} className="w-48 sm:w-64" />
      }
    >
      <Loaded query={query}>
        {(skills) => {
          const categories = Map.groupBy(
            skills.filter((skill) => isFound(skill, q)),
            ({ category }) => category,
          );
          if (categories.size === 0) return <None q={q} onClear={() => search('')} />;
          return [...categories].map(([category, found]) => (
            <Section
              key={category}
              title={category}
              actions={<span className="text-xs text-muted tabular-nums">{found.length}</span>}
              flush
            >
              <Table
                caption={`Skills of the category ${category}`}
                rows={found}
                rowKey={({ id }) => id}
                columns={columns(runs)}
              />
            </Section>
          ));
        }}
      </Loaded>
    </Page>
  );
}

/** How often each version ran in the last day. */
function useRuns(): ReadonlyMap<string, number> {
  const { data } = useQuery(statisticsQuery('day'));
  return new Map(
    data?.skills.map((one) => [skillPath(one), one.completed + one.failed + one.cancelled]),
  );
}

function isFound(skill: Skill, q: string): boolean {
  return hasWords(`${listedSkillPath(skill)} ${skill.display_name} ${skill.description}`, q);
}

const columns = (runs: ReadonlyMap<string, number>): Column<Skill>[] => [
  {
    header: 'Skill',
    cell: (skill) => (
      <div className="w-32 sm:w-44">
        <Link
          to="/skills/$category/$version/$name"
          params={{ category: skill.category, version: skill.version, name: skill.skill_name }}
          className={rowLink}
        >
          {skill.display_name}
        </Link>
        <p className="truncate font-mono text-xs text-muted">{skill.skill_name}</p>
      </div>
    ),
  },
  {
    header: 'What it does',
    from: 'sm',
    grows: true,
    cell: ({ description }) => (
      <span title={description} className="text-muted">
        {description}
      </span>
    ),
  },
  {
    header: 'Version',
    cell: ({ version, is_active }) => (
      <span className="flex items-center gap-2">
        <Tag>{version}</Tag>
        {!is_active && <Enabled is={false} />}
      </span>
    ),
  },
  {
    header: 'Runs, last day',
    align: 'right',
    cell: (skill) => {
      const n = runs.get(listedSkillPath(skill)) ?? 0;
      return <span className={n === 0 ? 'text-muted' : ''}>{countText(n)}</span>;
    },
  },
];

function None({ q, onClear }: { q: string; onClear: () => void }) {
  if (q !== '') {
    return (
      <Section>
        <Empty
          icon={<Puzzle />}
          title={`No skill has “${q}”`}
          action={<Button onClick={onClear}>Show all</Button>}
        />
      </Section>
    );
  }
  return (
    <Section>
      <Empty icon={<Puzzle />} title="No skills">
        Put your own modules, or folders with a SKILL.md, into a directory, set it as{' '}
        <code className="font-mono">SKILLS_DIR</code>, and start the platform again.
      </Empty>
    </Section>
  );
}
