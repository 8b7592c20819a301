import { Link } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { skillPath } from '../ui/Pickers.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { countText, Duration } from '../ui/Time.tsx';
import { Quiet } from './Quiet.tsx';

type Row = Schema<'StatisticsOfSkill'>;

const shownMax = 5;

const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 0 });

const Name = ({ row }: { row: Row }) => (
  <>
    {row.skill_name}
    <span className="ml-2 font-normal text-muted">
      {row.skill_category} {row.skill_version}
    </span>
  </>
);

/** Links to the failed runs among those accepted `since`. */
const failedRuns = (since: string): Column<Row> => ({
  header: 'Skill',
  grows: true,
  cell: (row) => (
    <Link
      to="/jobs"
      search={{ status: 'failed', skill: skillPath(row), since }}
      className={rowLink}
    >
      <Name row={row} />
    </Link>
  ),
});
const skill: Column<Row> = {
  header: 'Skill',
  grows: true,
  cell: (row) => (
    <Link
      to="/skills/$category/$version/$name"
      params={{
        category: row.skill_category,
        version: row.skill_version,
        name: row.skill_name,
      }}
      className={rowLink}
    >
      <Name row={row} />
    </Link>
  ),
};

export function FailingSkills({
  skills,
  window,
}: {
  skills: readonly Row[];
  window: 'hour' | 'day';
}) {
  const rows = skills
    .filter(({ failed }) => failed > 0)
    .sort((a, b) => b.failed - a.failed)
    .slice(0, shownMax);
  return (
    <Table
      caption="Most failing skills"
      rows={rows}
      rowKey={skillPath}
      columns={[
        failedRuns(window === 'day' ? '24h' : '1h'),
        { header: 'Failed', align: 'right', cell: ({ failed }) => countText(failed) },
        {
          header: 'Of its runs',
          align: 'right',
          cell: ({ failed, completed }) => percent.format(failed / (failed + completed)),
        },
      ]}
      empty={<Quiet>No run has failed.</Quiet>}
    />
  );
}

export function SlowestSkills({ skills }: { skills: readonly Row[] }) {
  const rows = skills
    .filter(({ average_duration_ms }) => average_duration_ms !== null)
    .sort((a, b) => (b.average_duration_ms ?? 0) - (a.average_duration_ms ?? 0))
    .slice(0, shownMax);
  return (
    <Table
      caption="Slowest skills"
      rows={rows}
      rowKey={skillPath}
      columns={[
        skill,
        {
          header: 'Runs',
          align: 'right',
          from: 'sm',
          cell: ({ completed, failed }) => countText(completed + failed),
        },
        {
          header: 'Average',
          align: 'right',
          cell: ({ average_duration_ms }) => <Duration ms={average_duration_ms} />,
        },
        {
          header: 'Longest',
          align: 'right',
          cell: ({ longest_duration_ms }) => <Duration ms={longest_duration_ms} />,
        },
      ]}
      empty={<Quiet>No run has ended.</Quiet>}
    />
  );
}
