// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/contrast.h"
#include "tests/ui/common/uitest.h"
#include "ui/style/chip.h"
#include "ui/style/fonts.h"
#include "ui/style/icons.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/stylesheet.h"
#include "ui/style/theme.h"

#include <QFontInfo>
#include <QFontMetrics>
#include <QHeaderView>
#include <QLabel>
#include <QPalette>
#include <QPlainTextEdit>
#include <QSet>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QVBoxLayout>

#include <cmath>
#include <iterator>
#include <vector>

using namespace klineage;
using namespace klineage::ui;

class ThemeTest : public UiTest
{
    Q_OBJECT

private slots:
    void textCanBeRead();
    void statusesHaveTheirOwnGlyphs();
    void styleSheetKnowsAllRoles();
    void digitsAreTabular();
    void iconsAreTheirThemesColour();
    void switchTakesKeysAndClicks();
    void textScalesWithoutItsStyle();
};

namespace {

/// Counts how often a widget is styled anew.
class StyleCounter : public QObject
{
public:
    bool eventFilter(QObject *, QEvent *event) override
    {
        count += event->type() == QEvent::StyleChange ? 1 : 0;
        return false;
    }
    int count = 0;
};

} // namespace

void ThemeTest::textCanBeRead()
{
    for (const Theme *theme : {&Theme::light(), &Theme::dark()}) {
        for (const QColor &ground :
             {theme->panel, theme->header, theme->selection, theme->hover, theme->diffAdd, theme->diffRemove})
            QVERIFY(contrast(theme->text, ground) >= 7);
        for (const QColor &ground : {theme->panel, theme->header, theme->raised, theme->background,
                                     theme->hover, theme->selection}) {
            for (const QColor &ink :
                 {theme->dim, theme->faint, theme->good, theme->warn, theme->bad, theme->accent})
                QVERIFY2(contrast(ink, ground) >= 4.5,
                         qPrintable(QStringLiteral("%1 on %2").arg(ink.name(), ground.name())));
        }
        // Chips have their colour behind them too, thinly.
        for (const QColor &ink : {theme->dim, theme->good, theme->warn, theme->bad, theme->accent})
            QVERIFY2(contrast(ink, blend(ink, theme->panel, theme->isDark ? 0.12 : 0.07)) >= 4.5,
                     qPrintable(ink.name()));
        QVERIFY(contrast(theme->onAccent, theme->accent) >= 4.5);
        QVERIFY(contrast(theme->isDark ? theme->onAccent : QColor(Qt::white), theme->good) >= 4.5);
        const QPalette palette = theme->palette();
        for (const QPalette::ColorGroup group : {QPalette::Active, QPalette::Inactive, QPalette::Disabled}) {
            const auto ratio = [&](QPalette::ColorRole ink, QPalette::ColorRole ground) {
                return contrast(palette.color(group, ink), palette.color(group, ground));
            };
            QVERIFY(ratio(QPalette::WindowText, QPalette::Window) >= 4.5);
            QVERIFY(ratio(QPalette::Text, QPalette::Base) >= 4.5);
            QVERIFY(ratio(QPalette::Text, QPalette::AlternateBase) >= 4.5);
            QVERIFY(ratio(QPalette::ButtonText, QPalette::Button) >= 4.5);
            QVERIFY(ratio(QPalette::HighlightedText, QPalette::Highlight) >= 4.5);
            QVERIFY(ratio(QPalette::PlaceholderText, QPalette::Base) >= 4.5);
            QVERIFY(ratio(QPalette::ToolTipText, QPalette::ToolTipBase) >= 4.5);
            QVERIFY(ratio(QPalette::Link, QPalette::Base) >= 4.5);
        }
    }
}

void ThemeTest::statusesHaveTheirOwnGlyphs()
{
    using gate::VerdictStatus;
    QSet<QString> glyphs;
    QSet<QString> words;
    const VerdictStatus all[] = {VerdictStatus::Correct, VerdictStatus::CompileError, VerdictStatus::Wrong,
                                 VerdictStatus::Unsafe,  VerdictStatus::Suspect,      VerdictStatus::Timeout,
                                 VerdictStatus::Crash,   VerdictStatus::Unavailable};
    for (const VerdictStatus status : all) {
        glyphs << statusStyle(status).glyph;
        words << statusStyle(status).word;
    }
    QCOMPARE(glyphs.size(), std::size(all));
    QCOMPARE(words.size(), std::size(all));
}

void ThemeTest::styleSheetKnowsAllRoles()
{
    for (const Theme *theme : {&Theme::light(), &Theme::dark()}) {
        const QString sheet = styleSheet(*theme);
        QVERIFY(sheet.size() > 1000);
        QVERIFY2(!sheet.contains(QLatin1Char('@')),
                 qPrintable(sheet.mid(sheet.indexOf(QLatin1Char('@')), 20)));
    }
}

void ThemeTest::digitsAreTabular()
{
    QCOMPARE(QFontInfo(interfaceFont()).family(), QStringLiteral("Inter Tabular"));
    QCOMPARE(QFontInfo(codeFont()).family(), QStringLiteral("JetBrains Mono NL"));
    const QFontMetricsF metrics(interfaceFont());
    for (const QChar digit : QStringLiteral("023456789"))
        QCOMPARE(metrics.horizontalAdvance(digit), metrics.horizontalAdvance(QLatin1Char('1')));
}

void ThemeTest::iconsAreTheirThemesColour()
{
    QVERIFY(icon(QStringLiteral("no-such-icon")).isNull());
    const QImage image = icon(QStringLiteral("stop")).pixmap(32, 32).toImage();
    QCOMPARE(image.pixelColor(16, 16), Theme::current().text);
    // The application's own has colours of its own, also where Qt has no plugin for SVG files.
    QCOMPARE(applicationIcon().pixmap(64, 64).toImage().pixelColor(32, 6), QColor(0x20, 0x2a, 0x3b));
}

/// All text follows, whatever set its size, in windows that are shown and in those that are not; and goes back to what it was.
void ThemeTest::textScalesWithoutItsStyle()
{
    QWidget shown;
    auto *column = new QVBoxLayout(&shown);
    auto *plain = new QLabel(QStringLiteral("plain"));
    auto *strong = new QLabel(QStringLiteral("strong"));
    strong->setFont(strongFont());
    auto *code = new QPlainTextEdit;
    code->setFont(codeFont());
    auto *table = new QTableView;
    makePlainHeader(table->horizontalHeader());
    QLabel hidden(QStringLiteral("hidden"));
    hidden.setFont(captionFont());
    const std::vector<QWidget *> widgets{
        plain, strong, code, table->horizontalHeader(), table->horizontalHeader()->viewport(), &hidden};
    for (QWidget *widget : {static_cast<QWidget *>(plain), static_cast<QWidget *>(strong),
                            static_cast<QWidget *>(code), static_cast<QWidget *>(table)})
        column->addWidget(widget);
    shown.show();
    QVERIFY(QTest::qWaitForWindowExposed(&shown));
    std::vector<double> before;
    StyleCounter styled;
    for (QWidget *widget : widgets) {
        before.push_back(widget->font().pointSizeF());
        widget->installEventFilter(&styled);
    }
    QVERIFY(before[3] < before[0] && before[3] == before[4]);
    for (const double scale : {1.3, 0.8, 1.0}) {
        Theme::setTextScale(scale);
        for (std::size_t i = 0; i < widgets.size(); ++i)
            QVERIFY2(std::abs(widgets[i]->font().pointSizeF() - scale * before[i]) < 0.01,
                     qPrintable(QStringLiteral("%1 at %2").arg(i).arg(scale)));
        QVERIFY(strong->font().weight() == QFont::DemiBold && code->font().family() == codeFont().family());
    }
    QCOMPARE(styled.count, 0);
}

void ThemeTest::switchTakesKeysAndClicks()
{
    SegmentedSwitch choice({QStringLiteral("one"), QStringLiteral("two"), QStringLiteral("three")});
    choice.show();
    const QSignalSpy changed(&choice, &SegmentedSwitch::currentChanged);
    QTest::mouseClick(&choice, Qt::LeftButton, {}, choice.segmentRect(2).center());
    QCOMPARE(choice.currentIndex(), 2);
    choice.setFocus();
    QTest::keyClick(&choice, Qt::Key_Left);
    QCOMPARE(choice.currentIndex(), 1);
    QTest::keyClick(&choice, Qt::Key_Left);
    QTest::keyClick(&choice, Qt::Key_Left);
    QCOMPARE(choice.currentIndex(), 0);
    QCOMPARE(changed.size(), 3);
}

KLINEAGE_UI_TEST(ThemeTest)
#include "tst_theme.moc"
