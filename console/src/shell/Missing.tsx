import { ButtonLink } from '../ui/Button.tsx';
import { Empty, Problem } from '../ui/Loading.tsx';
import { Page } from '../ui/Page.tsx';

export function Missing() {
  return (
    <Page title="Not found">
      <Empty title="There is no such page" action={<ButtonLink to="/">Overview</ButtonLink>}>
        The address may have been cut off, or what was here is gone.
      </Empty>
    </Page>
  );
}

/** A page that broke; the menu still works. */
export function RouteProblem({ error, reset }: { error: unknown; reset: () => void }) {
  return (
    <Page title="Something went wrong">
      <Problem error={error} retry={reset} />
    </Page>
  );
}
