import { Page } from '../ui/Page.tsx';

export function ApiKeysPage() {
  return <Page title="ApiKeys">{null}</Page>;
}
