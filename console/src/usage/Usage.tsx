/** What an agent, an API key or a scheduled job uses of models: today, this month, and by day. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { live } from '../api/queries.ts';
import { type Owner, type OwnUsage, usageQuery } from '../api/usage.ts';
import { BudgetDialog } from '../forms/BudgetDialog.tsx';
import { useHasScope } from '../shell/session.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { ChartColumn, Gauge } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { moneyText } from '../ui/Money.ts';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Section } from '../ui/Page.tsx';
import { type Column, Table } from '../ui/Table.tsx';
import { countText } from '../ui/Time.tsx';
import { Allowance } from './Allowance.tsx';
import { DayBars, dayText } from './DayBars.tsx';

type Day = OwnUsage['days'][number];

export const dayColumns: readonly Column<Day>[] = [
  { header: 'Prompt', align: 'right', from: 'sm', cell: (day) => countText(day.prompt_tokens) },
  {
    header: 'Completion',
    align: 'right',
    from: 'sm',
    cell: (day) => countText(day.completion_tokens),
  },
  { header: 'Tokens', align: 'right', cell: (day) => countText(day.total_tokens) },
  {
    header: 'Estimated',
    align: 'right',
    from: 'sm',
    cell: ({ estimated_tokens }) => (
      <span className={estimated_tokens === 0 ? 'text-muted' : ''}>
        {countText(estimated_tokens)}
      </span>
    ),
  },
  {
    header: 'Cached',
    align: 'right',
    from: 'lg',
    cell: ({ cache_read_tokens }) => (
      <span className={cache_read_tokens === 0 ? 'text-muted' : ''}>
        {countText(cache_read_tokens)}
      </span>
    ),
  },
  {
    header: 'Cost',
    align: 'right',
    cell: ({ cost_usd, cost_is_partial, unpriced_calls }) => (
      <span
        title={unpriced_calls > 0 ? `${unpriced_calls} calls without a known price` : undefined}
      >
        {moneyText(cost_usd, cost_is_partial)}
      </span>
    ),
  },
  {
    header: 'Calls',
    align: 'right',
    cell: ({ calls, unreported_calls }) => (
      <span title={unreported_calls > 0 ? `${unreported_calls} not reported in full` : undefined}>
        {countText(calls)}
      </span>
    ),
  },
];

export function Usage({ owner, noun }: { owner: Owner; noun: string }) {
  const [isEditing, setEditing] = useState(false);
  const mayEdit = useHasScope('budgets');
  const query = useQuery({ ...usageQuery(owner), refetchInterval: live });
  return (
    <Loaded query={query}>
      {(usage) => (
        <div className="flex flex-col gap-4">
          <Section
            title="Budget"
            actions={
              mayEdit ? (
                <Button size="small" icon={<Gauge />} onClick={() => setEditing(true)}>
                  Edit budget
                </Button>
              ) : (
                <NeedsScope scopes={['budgets']} act="Editing the budget" />
              )
            }
          >
            <div className="grid gap-x-10 gap-y-5 sm:grid-cols-2">
              <Allowance label="Today" period={usage.today} />
              <Allowance label="This month" period={usage.month} />
            </div>
          </Section>
          {usage.days.length === 0 ? (
            <Section>
              <NothingUsed noun={noun} />
            </Section>
          ) : (
            <Section title="Tokens and cost by day, in UTC" flush>
              <div className="border-b p-4">
                <DayBars usage={usage} />
              </div>
              <Table
                caption="Tokens by day"
                columns={[
                  {
                    header: 'Day',
                    grows: true,
                    cell: ({ day }) => <span title={day}>{dayText(day)}</span>,
                  },
                  ...dayColumns,
                ]}
                rows={usage.days}
                rowKey={({ day }) => day}
              />
            </Section>
          )}
          {isEditing && (
            <BudgetDialog owner={owner} limits={usage.limits} onClose={() => setEditing(false)} />
          )}
        </div>
      )}
    </Loaded>
  );
}

function NothingUsed({ noun }: { noun: string }) {
  return (
    <Empty
      icon={<ChartColumn />}
      title="No calls of models in the last 30 days"
      action={
        <ButtonLink
          to="/skills/$category/$version/$name"
          params={{ category: 'agent', version: 'v1.0', name: 'run-task' }}
          search={{ tab: 'run' }}
        >
          Run a task
        </ButtonLink>
      }
    >
      Once {noun} has a model work on something, its tokens are counted here, day by day.
    </Empty>
  );
}
