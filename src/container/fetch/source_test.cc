#include "container/fetch/source.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover::container {
namespace {

Result<Source> source(std::string uri, std::string output_file = "") {
  return source_of({.uri = std::move(uri), .output_file = std::move(output_file)});
}

TEST(Source, IsCalledAsTheLastPartOfItsPath) {
  EXPECT_EQ(source("http://host/a/b.tgz?token=x#part")->target, "b.tgz");
  EXPECT_EQ(source("https://host:8080/a%20b")->target, "a b");
  EXPECT_EQ(source("HTTP://host/a")->target, "a");
  EXPECT_EQ(source("file:///srv/x.sh")->place, "/srv/x.sh");
  EXPECT_EQ(source("file://localhost/srv/x%2Fy/z")->place, "/srv/x/y/z");
  EXPECT_TRUE(source("/srv/x.sh")->local);
  EXPECT_EQ(source("http://host/a", "in/here")->target, "in/here");
  EXPECT_EQ(source("http://host/a", "./in//here/")->target, "in/here");
}

TEST(Source, ShowsNoSecrets) {
  EXPECT_EQ(source("https://me:secret@host:1/a/b?key=k")->shown, "https://host:1/a/b");
  EXPECT_EQ(source("https://me:secret@host:1/a/b?key=k")->place, "https://me:secret@host:1/a/b?key=k");
  for (const char* bad : {"ftp://me:secret@host/a", "https://me:sec ret@host/a"})
    EXPECT_EQ(source(bad).error().message.find("sec"), std::string::npos) << source(bad).error().message;
}

TEST(Source, RefusesWhatItCannotPlace) {
  for (const char* uri :
       {"", "a", "hdfs://a/b", "ftp://a/b", "file://other/b", "http:///b", "http://a", "http://a/",
        "http://a/b/", "/a/", "http://a/..", "http://a/%2e%2e", "http://a/b%2fc", "http://a/b%00",
        "http://a/b c", "http://a/b\nc", "file:///a%00b"})
    EXPECT_FALSE(source(uri)) << uri;
  for (const char* target : {"/a", "..", "a/../b", "a/..", "stdout", "./stderr", ".", "/"})
    EXPECT_FALSE(source("http://a/b", target)) << target;
}

TEST(Source, TellsArchivesByTheirNames) {
  for (const char* name :
       {"a.tar", "a.TGZ", "a.tar.gz", "a.tar.bz2", "a.tbz2", "a.tar.xz", "a.txz", "a.tar.zst", "a.zip"})
    EXPECT_EQ(archive_kind(name), ArchiveKind::kArchive) << name;
  EXPECT_EQ(archive_kind("model.gz"), ArchiveKind::kGzip);
  for (const char* name : {"a", "tar", ".zip", "a.zip.txt", "a.bz2"})
    EXPECT_EQ(archive_kind(name), ArchiveKind::kNone) << name;
}

RC_GTEST_PROP(SourceProperty, InnerPathsStayInside, (const std::vector<std::string>& parts)) {
  std::string path;
  for (const auto& part : parts) path += part + *rc::gen::element<std::string>("/", "/../", "//", "/./");
  const auto inner = inner_path(path);
  if (!inner) return;
  RC_ASSERT((!inner->empty() && inner->front() != '/' && inner->back() != '/'));
  RC_ASSERT(("/" + *inner + "/").find("/../") == std::string::npos);
  RC_ASSERT(inner->find("//") == std::string::npos);
}

}  // namespace
}  // namespace drover::container
