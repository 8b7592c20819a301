import type { S3Settings } from '../../adapters/blobs/s3-blobs.ts';
import type { Config } from './config.ts';

type Given = Pick<
  Config,
  'filesS3Url' | 'filesS3Region' | 'filesS3AccessKeyId' | 'filesS3SecretAccessKey'
>;

/** The storage of files; null where files are in the data directory. */
export function s3SettingsOf(config: Given): S3Settings | null {
  if (config.filesS3Url === null) return null;
  return {
    url: config.filesS3Url,
    region: config.filesS3Region,
    accessKeyId: config.filesS3AccessKeyId ?? '',
    secretAccessKey: config.filesS3SecretAccessKey ?? '',
  };
}
