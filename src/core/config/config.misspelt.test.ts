import { expect, test } from 'vitest';
import { misspeltSettings } from './config.ts';

test.each([
  ['WORKER_CONCURENCY', 'WORKER_CONCURRENCY'],
  ['WORKER_CONCURRENYC', 'WORKER_CONCURRENCY'],
  ['worker_concurrency', 'WORKER_CONCURRENCY'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['ADMINSECRET', 'ADMIN_SECRET'],
  ['OPENAI_APIKEY', 'OPENAI_API_KEY'],
  ['EXECUTOR_MEMORY', 'EXECUTOR_MEMORY_MB'],
  ['SHUTDOWN_GRACE', 'SHUTDOWN_GRACE_MS'],
  ['SKILLDIR', 'SKILLS_DIR'],
  ['SKILSDIR', 'SKILLS_DIR'],
  ['SKILLSDIR', 'SKILLS_DIR'],
  ['skillsDir', 'SKILLS_DIR'],
  ['SKILL_DIR', 'SKILLS_DIR'],
  ['DATADIR', 'DATA_DIR'],
  ['DATA_DIRECTORY', undefined],
  ['MAX_AGENTS', 'AGENTS_MAX'],
  ['DIR_SKILLS', 'SKILLS_DIR'],
  ['LOGLEVEL', 'LOG_LEVEL'],
])('%s is taken for %s', (name, nearest) => {
  const expected = nearest === undefined ? [] : [{ name, nearest }];
  expect(misspeltSettings({ [name]: '1' })).toEqual(expected);
});

test('a setting that is set is not looked for in other names', () => {
  expect(misspeltSettings({ DATABASE_URI: 'a', DATABASE_URL: 'b' })).toEqual([]);
});

test('variables of common tools, settings and providers are left alone', () => {
  const names = [
    ...[
      'PORTAGE_ARCHLIST',
      'PORTAGE_CONFIGROOT',
      'CONFIG_PROTECT',
      'DATA',
      'DIR',
      'MAX',
      'WEBHOOKS',
    ],
    ...[
      'npm_config_user_agent',
      'npm_execpath',
      'npm_config_local_prefix',
      'npm_package_engines_node',
    ],
    ...[
      'AGENT',
      'AGENTS',
      'SKILLS',
      'TRIGGERS',
      'API_KEYS',
      'RETENTION',
      'MANPATH',
      'INFOPATH',
      'LS_COLORS',
    ],
    ...['PATH', 'HOME', 'PWD', 'OLDPWD', 'SHELL', 'SHLVL', 'USER', 'USERNAME', 'LOGNAME', 'TERM'],
    ...['LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'EDITOR', 'HOSTNAME', 'HOSTTYPE', 'MAIL', 'DISPLAY'],
    ...['POST', 'PORTS', 'GHOST', 'SSH_AUTH_SOCK', 'XDG_DATA_DIRS', 'XDG_DATA_HOME', 'BASE_DIR'],
    ...['NODE_ENV', 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'NODE_COMPILE_CACHE', 'INIT_CWD'],
    ...['UV_THREADPOOL_SIZE', 'npm_lifecycle_event', 'npm_config_cache', 'npm_package_json'],
    ...[
      'PGHOST',
      'PGDATA',
      'PGPASSWORD',
      'POSTGRES_DB',
      'REDIS_HOST',
      'REDIS_PORT',
      'REDIS_TLS_URL',
    ],
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'CI', 'GITHUB_TOKEN', 'KUBERNETES_SERVICE_HOST'],
    ...[
      'KUBERNETES_PORT',
      'REDIS_SERVICE_HOST',
      'JAVA_HOME',
      'GOPATH',
      'VIRTUAL_ENV',
      'AWS_REGION',
    ],
    ...['OPENAI_API_KEY', 'OPENAI_ORG_ID', 'OLLAMA_BASE_URL', 'OLLAMA_API_KEY', 'GROQ_API_KEY'],
    ...['ANTHROPIC_BASE_URL', 'ANTHROPIC_MODEL', 'LOG_LEVEL', 'PORT', 'ROLES', 'LOG_FORMAT'],
  ];
  expect(misspeltSettings(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([]);
});
