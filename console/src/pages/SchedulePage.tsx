import { Page } from '../ui/Page.tsx';

export function SchedulePage() {
  return <Page title="Schedule">{null}</Page>;
}
