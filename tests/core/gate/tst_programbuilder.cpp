// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/programbuilder.h"

#include <QTemporaryDir>
#include <QTest>
#include <fstream>

using namespace klineage;
using namespace klineage::gate;

namespace fs = std::filesystem;

namespace {

void write(const fs::path &file, const std::string &text)
{
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

std::string read(const fs::path &file)
{
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

class TestProgramBuilder : public QObject
{
    Q_OBJECT

private slots:
    void copiesWhatIsMissing();
    void followsNoLink();
    void hasLimits();
    void saysThatAFolderIsMissing();
};

void TestProgramBuilder::copiesWhatIsMissing()
{
    const QTemporaryDir dir;
    const fs::path from = dir.filePath("from").toStdString();
    const fs::path to = dir.filePath("to").toStdString();
    write(from / "AB" / "CDEF" / "program.bc", "new");
    write(from / "AB" / "CDEF" / "k" / "16-1-1" / "k.so", "code");
    write(to / "AB" / "CDEF" / "program.bc", "old");
    QVERIFY(copyPrograms(from, to));
    QCOMPARE(read(to / "AB" / "CDEF" / "program.bc"), "old");
    QCOMPARE(read(to / "AB" / "CDEF" / "k" / "16-1-1" / "k.so"), "code");
}

// A worker may have made them, to be given what it must not read or to have written what it must not write.
void TestProgramBuilder::followsNoLink()
{
    const QTemporaryDir dir;
    const fs::path from = dir.filePath("from").toStdString();
    const fs::path to = dir.filePath("to").toStdString();
    const fs::path elsewhere = dir.filePath("elsewhere").toStdString();
    write(elsewhere / "secret", "secret");
    write(from / "AB" / "program.bc", "code");
    fs::create_symlink(elsewhere / "secret", from / "AB" / "link");
    fs::create_directory_symlink(elsewhere, from / "CD");
    fs::create_directories(to);
    QVERIFY(copyPrograms(from, to));
    QCOMPARE(read(to / "AB" / "program.bc"), "code");
    QVERIFY(!fs::exists(fs::symlink_status(to / "AB" / "link")));
    QVERIFY(!fs::exists(fs::symlink_status(to / "CD")));

    fs::remove_all(to);
    fs::create_directories(to);
    fs::create_directory_symlink(elsewhere, to / "AB");
    QVERIFY(!copyPrograms(from, to));
    QVERIFY(!fs::exists(elsewhere / "program.bc"));

    fs::remove_all(to);
    fs::create_directories(to / "AB");
    fs::create_symlink(elsewhere / "planted", to / "AB" / "program.bc");
    QVERIFY(copyPrograms(from, to));
    QVERIFY(!fs::exists(elsewhere / "planted"));
}

void TestProgramBuilder::hasLimits()
{
    const QTemporaryDir dir;
    const fs::path from = dir.filePath("from").toStdString();
    const fs::path to = dir.filePath("to").toStdString();
    for (int i = 0; i < 1025; ++i)
        write(from / std::to_string(i), "");
    fs::create_directories(to);
    QVERIFY(!copyPrograms(from, to));

    const fs::path deep = dir.filePath("deep").toStdString();
    fs::path below = deep;
    for (int i = 0; i < 12; ++i)
        below /= "a";
    write(below / "program.bc", "code");
    const fs::path shallow = dir.filePath("shallow").toStdString();
    fs::create_directories(shallow);
    QVERIFY(copyPrograms(deep, shallow));
    QVERIFY(fs::exists(shallow / "a" / "a" / "a"));
    QVERIFY(!fs::exists(shallow / below.lexically_relative(deep)));
}

void TestProgramBuilder::saysThatAFolderIsMissing()
{
    const QTemporaryDir dir;
    const auto copied = copyPrograms(dir.filePath("none").toStdString(), dir.path().toStdString());
    QVERIFY(!copied);
    QVERIFY(copied.error().message.starts_with("Cannot open"));
}

QTEST_GUILESS_MAIN(TestProgramBuilder)
#include "tst_programbuilder.moc"
