import type { KeyboardEvent } from 'react';

/** Submits a form on Ctrl Enter (⌘ Enter), also from a field with several lines. For `onKeyDown` of the form. */
export function submitOnCtrlEnter(event: KeyboardEvent<HTMLFormElement>): void {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  // In the open list of a field, Enter chooses.
  if (event.defaultPrevented) return;
  // React also passes on the events of a dialog that was opened from the form.
  if (!event.currentTarget.contains(event.target as Node)) return;
  event.preventDefault();
  if (!event.repeat && !event.nativeEvent.isComposing) event.currentTarget.requestSubmit();
}
