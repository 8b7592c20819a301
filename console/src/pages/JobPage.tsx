import { Page } from '../ui/Page.tsx';

export function JobPage() {
  return <Page title="Job">{null}</Page>;
}
