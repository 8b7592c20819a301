# The formula of a tap, from the single executables of a release. `npm run release` fills in what stands between @ signs,
# and writes dist-packages/skillwright.rb. A test reads it with Ruby; Homebrew was not run.
class Skillwright < Formula
  desc "Self-hosted platform that runs skills for agents"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_arm do
      url "@URL darwin-arm64@"
      sha256 "@SHA256 darwin-arm64@"
    end
    on_intel do
      url "@URL darwin-x64@"
      sha256 "@SHA256 darwin-x64@"
    end
  end
  on_linux do
    on_arm do
      url "@URL linux-arm64@"
      sha256 "@SHA256 linux-arm64@"
    end
    on_intel do
      url "@URL linux-x64@"
      sha256 "@SHA256 linux-x64@"
    end
  end

  def install
    bin.install Dir["skillwright-*"].first => "skillwright"
    chmod 0755, bin/"skillwright"
    # macOS runs no program without a signature, and a release is not signed there.
    system "codesign", "--force", "--sign", "-", bin/"skillwright" if OS.mac?
  end

  service do
    run opt_bin/"skillwright"
    environment_variables DATA_DIR: var/"skillwright"
    keep_alive crashed: true
    log_path var/"log/skillwright.log"
    error_log_path var/"log/skillwright.log"
  end

  def caveats
    <<~EOS
      The first start of the service writes the admin secret to #{var}/skillwright/admin-secret.
      What is wrong with it: DATA_DIR=#{var}/skillwright skillwright doctor
    EOS
  end

  test do
    ENV["DATA_DIR"] = testpath/"data"
    assert_match version.to_s, shell_output("#{bin}/skillwright --version")
    system bin/"skillwright", "doctor"
  end
end
