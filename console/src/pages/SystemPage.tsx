import { Page } from '../ui/Page.tsx';

export function SystemPage() {
  return <Page title="System">{null}</Page>;
}
