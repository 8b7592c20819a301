import { Menu } from '@base-ui/react/menu';
import { Building2, Check, ChevronsUpDown, LogOut, Monitor, Moon, Sun } from '../ui/icons.tsx';
import { enterOrganization, leaveSignedOut } from './leave.ts';
import { useSession } from './session.ts';
import { type Theme, useTheme } from './theme.ts';

const item =
  'flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5 text-[13px] outline-none select-none data-highlighted:bg-hover [&_svg]:size-4';
const heading = 'px-2.5 pt-2 pb-1 text-xs font-medium text-muted';
const themes: readonly [Theme, string, typeof Sun][] = [
  ['system', 'As the system', Monitor],
  ['light', 'Light', Sun],
  ['dark', 'Dark', Moon],
];

/** Who is signed in, in which organization, and how it looks. */
export function Account() {
  const session = useSession();
  const [theme, setTheme] = useTheme();
  return (
    <Menu.Root>
      <Menu.Trigger className="flex w-full items-center gap-2 rounded-md px-2 py-1.5 text-left transition-colors hover:bg-hover">
        <span className="min-w-0 grow">
          <span className="block truncate text-[13px] font-medium">{session.client_name}</span>
          <span className="block truncate text-xs text-muted">{session.organization_id}</span>
        </span>
        <ChevronsUpDown className="size-4 shrink-0 text-muted" aria-hidden />
        <span className="sr-only">Account</span>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner sideOffset={6} align="start" className="z-60">
          <Menu.Popup className="max-h-[70vh] min-w-52 overflow-y-auto rounded-lg border bg-surface p-1 shadow-high outline-none">
            {session.organizations.length > 1 && (
              <Menu.Group>
                <Menu.GroupLabel className={heading}>Organization</Menu.GroupLabel>
                {session.organizations.map((id) => (
                  <Menu.Item key={id} className={item} onClick={() => void enterOrganization(id)}>
                    <Building2 aria-hidden />
                    {id}
                    {id === session.organization_id && (
                      <Check className="ml-auto" aria-label="current" />
                    )}
                  </Menu.Item>
                ))}
              </Menu.Group>
            )}
            <Menu.RadioGroup value={theme} onValueChange={setTheme}>
              <Menu.Group>
                <Menu.GroupLabel className={heading}>Appearance</Menu.GroupLabel>
                {themes.map(([value, label, Icon]) => (
                  <Menu.RadioItem key={value} value={value} className={item}>
                    <Icon aria-hidden />
                    {label}
                    <Menu.RadioItemIndicator className="ml-auto">
                      <Check aria-hidden />
                    </Menu.RadioItemIndicator>
                  </Menu.RadioItem>
                ))}
              </Menu.Group>
            </Menu.RadioGroup>
            <Menu.Separator className="my-1 border-t" />
            <Menu.Item className={item} onClick={() => void leaveSignedOut()}>
              <LogOut aria-hidden />
              Sign out
            </Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
