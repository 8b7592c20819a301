/** Light or dark, or as the system has it. `public/theme.js` applies it before the page is drawn. */
import { useEffect, useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

function apply(theme: Theme): void {
  const isDark = theme === 'dark' || (theme === 'system' && systemIsDark.matches);
  document.documentElement.classList.toggle('dark', isDark);
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(
    () => (localStorage.getItem('theme') ?? 'system') as Theme,
  );
  useEffect(() => {
    apply(theme);
    const onSystem = () => apply(theme);
    systemIsDark.addEventListener('change', onSystem);
    return () => systemIsDark.removeEventListener('change', onSystem);
  }, [theme]);
  return [
    theme,
    (next) => {
      localStorage.setItem('theme', next);
      setTheme(next);
    },
  ];
}
