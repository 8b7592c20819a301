import { classes } from '../ui/classes.ts';

export function Logo({ className }: { className?: string }) {
  return (
    <span
      className={classes('inline-flex items-center gap-2 font-semibold tracking-tight', className)}
    >
      <img src="/console/icon.svg" alt="" className="size-6" />
      Skillwright
    </span>
  );
}
