import { Page } from '../ui/Page.tsx';

export function MemoriesPage() {
  return <Page title="Memories">{null}</Page>;
}
