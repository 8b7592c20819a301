import { Page } from '../ui/Page.tsx';

export function ApiKeyPage() {
  return <Page title="ApiKey">{null}</Page>;
}
