import type { ReactNode } from 'react';

/** There is nothing to see, which is as it should be. */
export const Quiet = ({ children }: { children: ReactNode }) => (
  <p className="px-4 py-6 text-center text-[13px] text-muted">{children}</p>
);
