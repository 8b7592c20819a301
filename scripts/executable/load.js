/** Imports a module for the single executable, which cannot import files itself (main.js). */
export const load = (url) => import(url);
