// SPDX-License-Identifier: GPL-3.0-or-later
// Files are chosen through one helper, which asks the desktop's portal only where somebody answers.
#include "tests/paths.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/style/choosefile.h"

#include <QDialogButtonBox>
#include <QDirIterator>
#include <QFile>
#include <QFileDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>

using namespace klineage::ui;

namespace {

constexpr const char *themeVariable = "QT_QPA_PLATFORMTHEME";
constexpr const char *platformVariable = "QT_QPA_PLATFORM";
constexpr const char *busVariable = "DBUS_SESSION_BUS_ADDRESS";

} // namespace

class TestChooseFile : public UiTest
{
    Q_OBJECT

private slots:
    void nobodyElseOpensAFileDialog()
    {
        const QString ui = QString::fromStdString(klineage::test::sourcePath()) + QStringLiteral("/ui/");
        for (QDirIterator it(ui, {QStringLiteral("*.cpp"), QStringLiteral("*.h")}, QDir::Files,
                             QDirIterator::Subdirectories);
             it.hasNext();) {
            QFile file(it.next());
            QVERIFY(file.open(QIODevice::ReadOnly));
            QVERIFY2(!file.readAll().contains("QFileDialog")
                         || file.fileName().endsWith(QLatin1String("style/choosefile.cpp")),
                     qPrintable(file.fileName()));
        }
    }

    void thePortalIsAskedOnlyWhereItAnswers()
    {
        const QByteArray platform = qgetenv(platformVariable);
        const QByteArray bus = qgetenv(busVariable);
        qunsetenv(themeVariable);
        qputenv(busVariable, "unix:path=/nonexistent");
        preferPortal(); // offscreen there is no desktop
        QVERIFY(!qEnvironmentVariableIsSet(themeVariable));
        qputenv(platformVariable, "xcb");
        qunsetenv(busVariable);
        preferPortal();
        QVERIFY(!qEnvironmentVariableIsSet(themeVariable));
        qputenv(busVariable, "unix:path=/nonexistent");
        qputenv(themeVariable, "gtk3"); // somebody's choice stays
        preferPortal();
        QCOMPARE(qgetenv(themeVariable), QByteArray("gtk3"));
        qunsetenv(themeVariable);
        qputenv(platformVariable, platform);
        qputenv(busVariable, bus);
    }

    /// The kind gives the ending, and the folder of the last time is proposed.
    void savingProposesANameAndAnEnding()
    {
        const QTemporaryDir folder;
        const auto save = [&](const QString &typed) {
            withNextModal<QFileDialog>(this, [typed](QFileDialog &dialog) {
                if (!typed.isEmpty())
                    dialog.findChild<QLineEdit *>(QStringLiteral("fileNameEdit"))->setText(typed);
                QTest::mouseClick(dialog.findChild<QDialogButtonBox *>()->button(QDialogButtonBox::Save),
                                  Qt::LeftButton);
            });
            return chooseFileToSave(nullptr, QStringLiteral("Save"), QStringLiteral("runs"),
                                    QStringLiteral("PNG picture (*.png);;CSV table (*.csv)"));
        };
        QCOMPARE(save(folder.filePath(QStringLiteral("mine.csv"))),
                 folder.filePath(QStringLiteral("mine.csv")));
        QCOMPARE(save({}), folder.filePath(QStringLiteral("runs.csv")));
    }
};

KLINEAGE_UI_TEST(TestChooseFile)
#include "tst_choosefile.moc"
