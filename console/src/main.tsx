import './styles.css';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/queries.ts';
import { router } from './router.tsx';
import { Toasts } from './ui/Toasts.tsx';

// A platform that was upgraded may have no more what this page was to load: it begins anew, once.
addEventListener('vite:preloadError', (event) => {
  const key = 'begun-anew-at';
  if (Date.now() - Number(sessionStorage.getItem(key)) < 60_000) return;
  event.preventDefault();
  sessionStorage.setItem(key, String(Date.now()));
  // Without a platform there would be no page at all.
  fetch('/health').then(
    () => location.reload(),
    () => {},
  );
});

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
        <Toasts />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
