import { Page } from '../ui/Page.tsx';

export function SchedulesPage() {
  return <Page title="Schedules">{null}</Page>;
}
