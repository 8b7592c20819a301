import { ButtonLink } from '../ui/Button.tsx';
import { Empty, Problem } from '../ui/Loading.tsx';
import { Page } from '../ui/Page.tsx';

export function Missing() {
  return (
    <Page title="Not found">
      <Empty title="Page not found" action={<ButtonLink to="/">Overview</ButtonLink>}>
        The address may be incomplete, or the page no longer exists.
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
