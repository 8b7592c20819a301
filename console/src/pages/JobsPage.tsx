import { Page } from '../ui/Page.tsx';

export function JobsPage() {
  return <Page title="Jobs">{null}</Page>;
}
