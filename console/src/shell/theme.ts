/** Light or dark, or as the system has it. `public/theme.js` applies it before the page is drawn. */
import { useSyncExternalStore } from 'react';

export type Theme = 'system' | 'light' | 'dark';

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
let theme = (localStorage.getItem('theme') ?? 'system') as Theme;

function apply(): void {
  const isDark = theme === 'dark' || (theme === 'system' && systemIsDark.matches);
  document.documentElement.classList.toggle('dark', isDark);
}

// Until the page is closed.
systemIsDark.addEventListener('change', apply);

function setTheme(next: Theme): void {
  theme = next;
  localStorage.setItem('theme', next);
  apply();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = (): [Theme, (theme: Theme) => void] => [
  useSyncExternalStore(subscribe, () => theme),
  setTheme,
];
