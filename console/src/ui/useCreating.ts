import { useNavigate, useSearch } from '@tanstack/react-router';

/** In the url of a list: its dialog for a new one is open. */
export const creating = { dialog: 'new' } as const;

/** Whether the creation dialog is open, and a function to open and close it; the palette links to it too. */
export function useCreating(): readonly [boolean, (isCreating: boolean) => void] {
  const dialog = useSearch({ strict: false, select: (search) => search.dialog });
  const navigate = useNavigate();
  const turn = (isCreating: boolean) =>
    void navigate({
      to: '.',
      search: ({ dialog: _, ...search }) => (isCreating ? { ...search, ...creating } : search),
      // The back button does not reopen a closed dialog.
      replace: !isCreating,
      resetScroll: false,
    });
  return [dialog === creating.dialog, turn];
}
