// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/filelock.h"

#include <QTemporaryFile>
#include <QTest>

#include <cerrno>
#include <thread>

#include <fcntl.h>

using namespace klineage;
using namespace std::chrono_literals;

class TestFileLock : public QObject
{
    Q_OBJECT

private:
    QTemporaryFile m_file;

    /// Locks belong to the opening, not to the process: two openings are two programs.
    FileDescriptor opened() const
    {
        return FileDescriptor(::open(m_file.fileName().toLocal8Bit().constData(), O_RDWR | O_CLOEXEC));
    }

private slots:
    void initTestCase() { QVERIFY(m_file.open()); }

    void keepsOthersOut_data()
    {
        QTest::addColumn<bool>("firstShared");
        QTest::addColumn<bool>("secondShared");
        QTest::addColumn<bool>("had");
        QTest::newRow("writer, writer") << false << false << false;
        QTest::newRow("writer, reader") << false << true << false;
        QTest::newRow("reader, writer") << true << false << false;
        QTest::newRow("reader, reader") << true << true << true;
    }

    void keepsOthersOut()
    {
        QFETCH(bool, firstShared);
        QFETCH(bool, secondShared);
        QFETCH(bool, had);
        const auto kind = [](bool shared) { return shared ? LockKind::Shared : LockKind::Exclusive; };
        FileDescriptor first = opened();
        const FileDescriptor second = opened();
        QVERIFY(lockDescriptor(first, kind(firstShared)) == LockOutcome::Had);
        QVERIFY(lockDescriptor(second, kind(secondShared)) == (had ? LockOutcome::Had : LockOutcome::Busy));
        first.close();
        QVERIFY(lockDescriptor(second, kind(secondShared)) == LockOutcome::Had);
    }

    void waitsAsLongAsItMay()
    {
        const FileDescriptor first = opened();
        QVERIFY(lockDescriptor(first, LockKind::Exclusive) == LockOutcome::Had);
        int told = 0;
        const auto begin = std::chrono::steady_clock::now();
        const LockWait wait{50ms, 1ms, {}, [&told] { ++told; }};
        QVERIFY(lockDescriptor(opened(), LockKind::Exclusive, wait) == LockOutcome::Busy);
        QVERIFY(std::chrono::steady_clock::now() - begin >= 50ms);
        QCOMPARE(told, 1);
    }

    void getsWhatIsLetGo()
    {
        FileDescriptor first = opened();
        QVERIFY(lockDescriptor(first, LockKind::Exclusive) == LockOutcome::Had);
        // The first is let go of when the second is known to wait.
        const LockWait wait{600s, 1ms, {}, [&first] { first.close(); }};
        QVERIFY(lockDescriptor(opened(), LockKind::Exclusive, wait) == LockOutcome::Had);

        FileDescriptor held = opened();
        QVERIFY(lockDescriptor(held, LockKind::Exclusive) == LockOutcome::Had);
        std::jthread later([&held] {
            std::this_thread::sleep_for(20ms);
            held.close();
        });
        QVERIFY(lockDescriptorForever(opened(), LockKind::Shared) == LockOutcome::Had);
    }

    void stops()
    {
        const FileDescriptor first = opened();
        QVERIFY(lockDescriptor(first, LockKind::Exclusive) == LockOutcome::Had);
        std::stop_source stop;
        const LockWait wait{600s, 1ms, stop.get_token(), [&stop] { stop.request_stop(); }};
        QVERIFY(lockDescriptor(opened(), LockKind::Exclusive, wait) == LockOutcome::Stopped);
    }

    void saysWhatCannotBeLocked()
    {
        const FileDescriptor none;
        QVERIFY(lockDescriptor(none, LockKind::Exclusive, {600s}) == LockOutcome::Refused);
        QCOMPARE(errno, EBADF);
        QVERIFY(lockDescriptorForever(none, LockKind::Exclusive) == LockOutcome::Refused);
    }
};

QTEST_GUILESS_MAIN(TestFileLock)
#include "tst_filelock.moc"
