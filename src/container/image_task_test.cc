// Tasks in images: an overlay over real layers, made from programs of this machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "container/oci_fixture.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ImageTaskTest : public OciFixture {
 protected:
  void SetUp() override {
    OciFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    base_ = state_ + "/images/base";
    for (const char* program : {"/bin/sh", "/bin/cat", "/bin/ls", "/bin/id", "/bin/touch"}) add(program);
    fs::create_directories(base_ + "/etc");
    std::ofstream(base_ + "/etc/passwd") << "root:x:0:0::/root:/bin/sh\napp:x:1234:1235::/app:/bin/sh\n";
  }

  /// Copies a program and the libraries that it loads.
  void add(const std::string& program) const {
    copy(program);
    Command command;
    command.arguments = {"ldd", program};
    command.environment = minimal_environment();
    std::istringstream words(run_command(command).value().output);
    for (std::string word; words >> word;)
      if (word.starts_with('/')) copy(word);
  }
  void copy(const std::string& file) const {
    fs::create_directories(fs::path(base_ + file).parent_path());
    fs::copy_file(file, base_ + file, fs::copy_options::skip_existing);
  }

  Launch image_launch(const std::string& name, const std::string& script) const {
    auto launch = launch_of(name, {"/bin/sh", "-c", script});
    launch.task.image = base_;
    return launch;
  }

  std::string base_;
};

TEST_F(ImageTaskTest, SeesTheImageAndItsSandboxAndNothingOfTheHost) {
  const auto launch =
      image_launch("image", "pwd; echo $MESOS_SANDBOX; ls /; echo mine > $MESOS_SANDBOX/file");
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_THAT(sandbox_file(launch.task.id, "stdout"),
              ::testing::StartsWith("/mnt/mesos/sandbox\n/mnt/mesos/sandbox\nbin\ndev\netc\n"));
  EXPECT_THAT(sandbox_file(launch.task.id, "stdout"), ::testing::Not(HasSubstr("home")));
  EXPECT_EQ(sandbox_file(launch.task.id, "file"), "mine\n");
}

TEST_F(ImageTaskTest, WritesGoToTheTasksOwnLayer) {
  EXPECT_EQ(run(image_launch("writer", "echo changed > /etc/passwd; echo x > /new; cat /new")).exit_status,
            0);
  EXPECT_FALSE(fs::exists(base_ + "/new"));
  const auto reader = image_launch("reader", "cat /etc/passwd; ls /new");
  EXPECT_NE(run(reader).exit_status, 0);
  EXPECT_THAT(sandbox_file(reader.task.id, "stdout"), HasSubstr("app:x:1234"));
}

TEST_F(ImageTaskTest, AReadOnlyImageStaysReadOnlyButForTheSandbox) {
  auto launch = image_launch("readonly", "touch /x /etc/x /bin/x; touch here && echo sandbox");
  launch.task.read_only = true;
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "sandbox\n");
  const auto errors = sandbox_file(launch.task.id, "stderr");
  for (const char* path : {"/x", "/etc/x", "/bin/x"})
    EXPECT_THAT(errors, HasSubstr("'" + std::string(path) + "': Read-only file system"));
}

TEST_F(ImageTaskTest, UpperLayersHideLowerOnes) {
  auto launch = image_launch("layers", "cat /etc/passwd /etc/more");
  std::string layers = base_;
  for (int i = 0; i < 120; ++i) {
    const auto layer = state_ + "/images/a rather long name, with a comma: and a colon " + std::to_string(i);
    fs::create_directories(layer + "/etc");
    std::ofstream(layer + "/etc/more") << i << "\n";
  }
  // The fixture divides a reference at its commas.
  auto changed = options();
  changed.launching.prepare_image = [this](const std::string&, const User&,
                                           const auto&) -> Result<image::Image> {
    image::Image image;
    image.layers = {base_};
    for (int i = 0; i < 120; ++i)
      image.layers.push_back(state_ + "/images/a rather long name, with a comma: and a colon " +
                             std::to_string(i));
    return image;
  };
  open(std::move(changed));
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_THAT(sandbox_file(launch.task.id, "stdout"), ::testing::EndsWith("\n119\n"));
}

TEST_F(ImageTaskTest, RunsAsTheCallerWhateverTheImageSays) {
  auto changed = options();
  changed.launching.prepare_image = [this](const std::string&, const User&,
                                           const auto&) -> Result<image::Image> {
    image::Image image;
    image.layers = {base_};
    image.config.user = "app";
    return image;
  };
  open(std::move(changed));
  auto launch = image_launch("caller", "id -u; id -g; echo $HOME");
  launch.task.user = User{65534, 65534, {}, "nobody", "/nonexistent"};
  launch.task.owner = 65534;
  run(launch);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "65534\n65534\n/mnt/mesos/sandbox\n");
  launch.task.id = id_of("root");
  launch.task.user = User{0, 0, {}, "root", "/root"};
  launch.task.owner = 0;
  run(launch);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "1234\n1235\n/app\n");
}

TEST_F(ImageTaskTest, AnImageThatCannotBeMadeReadyIsAnErrorThatLeavesNothing) {
  auto changed = options();
  changed.launching.prepare_image = [](const std::string&, const User&, const auto&) -> Result<image::Image> {
    return fail(ErrorKind::kInvalid, "That is no image");
  };
  open(std::move(changed));
  const auto launch = image_launch("broken", "true");
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().message, "That is no image");
  EXPECT_FALSE(fs::exists(state_ + "/tasks/" + launch.task.id + "/bundle"));
}

TEST_F(ImageTaskTest, ThatRootGetsNoIdsOfItsOwnIsToldOnce) {
  const auto path = state_ + "/fake-runtime";
  std::ofstream(path) << "#!/bin/sh\nfor folder in . \"$@\"; do\n"
                      << "  if grep -qs uidMappings \"$folder/config.json\"; then\n"
                      << "    echo 'there are no more ids' >&2\n    exit 1\n  fi\ndone\n"
                      << "exec " << runtimes().back().path << " \"$@\"\n";
  fs::permissions(path, fs::perms(0755));
  std::vector<std::string> told;
  auto changed = options();
  changed.runtime = path;
  changed.launching.ids = {300'000};
  changed.warn = [&](const std::string& line) { told.push_back(line); };
  open(std::move(changed));
  for (const char* name : {"unmapped", "unmapped-too"}) {
    const auto launch = image_launch(name, "cat /proc/self/uid_map");
    EXPECT_EQ(run(launch).exit_status, 0);
    EXPECT_THAT(sandbox_file(launch.task.id, "stdout"), HasSubstr("4294967295"));
  }
  EXPECT_THAT(told, ::testing::ElementsAre(::testing::AllOf(HasSubstr("is the machine's root"),
                                                            HasSubstr("there are no more ids"))));
}

}  // namespace
}  // namespace drover::container
