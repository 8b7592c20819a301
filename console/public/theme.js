// Before anything is drawn, so that nothing flashes: what was chosen, else what the system says.
const chosen = localStorage.getItem('theme');
const isDark =
  chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
document.documentElement.classList.toggle('dark', isDark);
