import './styles.css';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/queries.ts';
import { createPlaces } from './router.tsx';
import { SignedIn } from './shell/SignedIn.tsx';
import { useSession } from './shell/session.ts';
import { Toasts } from './ui/Toasts.tsx';

// A page that the browser has kept may be of a session that has ended since.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});

function Places() {
  const { organization_id } = useSession();
  const [router] = useState(() => createPlaces(organization_id));
  return <RouterProvider router={router} />;
}

/** How long the first drawing waits for its font: text that is drawn in another one moves when it comes. */
const fontMs = 500;

await Promise.race([
  document.fonts.load('1rem "Inter Variable"').catch(() => []),
  new Promise((resolve) => setTimeout(resolve, fontMs)),
]);

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <SignedIn>
          <Places />
        </SignedIn>
        <Toasts />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
