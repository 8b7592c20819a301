import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { AccountSection } from '../accounts/AccountSection.tsx';
import {
  decideMcpSkill,
  deleteMcpServer,
  type McpServer,
  mcpServerQuery,
  readMcpVersion,
  refreshMcpServer,
} from '../api/mcp-servers.ts';
import { McpServerForm } from '../forms/McpServerForm.tsx';
import { type Fact, SourcePage } from '../remote/SourcePage.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { Tags } from '../ui/Tags.tsx';

const route = getRouteApi('/shell/mcp-servers/$name');
const parent = { label: 'Outside servers', to: '/mcp-servers' };
const acts = {
  refresh: refreshMcpServer,
  remove: deleteMcpServer,
  decide: decideMcpSkill,
  read: readMcpVersion,
  form: (server: McpServer, close: () => void) => <McpServerForm server={server} onClose={close} />,
};

export function McpServerPage() {
  return (
    <AdministratorOnly title="Outside server">
      <OneServer />
    </AdministratorOnly>
  );
}

function OneServer() {
  const { name } = route.useParams();
  return (
    <SourcePage
      name={name}
      parent={parent}
      query={useQuery(mcpServerQuery(name))}
      changes={[['mcp-servers'], ['skills'], ['accounts']]}
      acts={acts}
      facts={factsOf}
      what={{ source: 'Server', tool: 'tool' }}
      extra={(server) => <AccountSection server={server.name} />}
    />
  );
}

const factsOf = (server: McpServer): Fact[] => {
  const self = [server.server.name, server.server.version].filter((text) => text !== null);
  return [
    [
      server.url === null ? 'Command' : 'Address',
      server.url ?? [server.command, ...server.args].join(' '),
    ],
    server.headers.length > 0 && ['Headers', <Tags key="headers" values={server.headers} />],
    server.env.length > 0 && ['Environment', <Tags key="env" values={server.env} />],
    server.oauth !== null && ['Tokens', grants[server.oauth.grant]],
    server.oauth?.issuer != null && ['Issuer', server.oauth.issuer],
    self.length > 0 && ['Calls itself', self.join(' ')],
    server.server.protocol !== null && ['Protocol', server.server.protocol],
  ];
};

const grants = {
  client_credentials: 'OAuth client credentials: one token for all organizations',
  authorization_code: 'OAuth authorization code: an account of each organization',
};
