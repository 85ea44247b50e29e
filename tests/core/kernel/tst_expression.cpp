// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/expression.h"

#include <QTest>

#include <cmath>
#include <limits>

using namespace klineage;
using namespace klineage::kernel;

namespace {

const Bindings bindings = {{"M", std::int64_t{4096}},
                           {"N", std::int64_t{100}},
                           {"BM", std::int64_t{128}},
                           {"zero", std::int64_t{0}},
                           {"minus", std::int64_t{-7}},
                           {"big", std::numeric_limits<std::int64_t>::max()},
                           {"half", 0.5},
                           {"inf", std::numeric_limits<double>::infinity()}};

/// As JSON would show it: integers without a point.
QString shown(const Value &value)
{
    if (const auto *integer = std::get_if<std::int64_t>(&value))
        return QString::number(*integer);
    const QString text = QString::number(std::get<double>(value), 'g', 12);
    return text.contains('.') || text.contains('e') ? text : text + ".0";
}

} // namespace

class TestExpression : public QObject
{
    Q_OBJECT

private slots:
    void values_data();
    void values();
    void failures_data();
    void failures();
    void syntaxErrors_data();
    void syntaxErrors();
    void wholeNumbers();
    void namesAreCollected();
    void constantsAndEquality();
    void copiesShareNothingMutable();
};

void TestExpression::values_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("value");
    const auto row = [](const char *text, const char *value) { QTest::newRow(text) << text << value; };
    row("0", "0");
    row("42", "42");
    row("-42", "-42");
    row("- 42", "-42");
    row("1.5", "1.5");
    row("2.", "2.0");
    row("1e3", "1000.0");
    row("25e-1", "2.5");
    row("9223372036854775807", "9223372036854775807");
    row("-9223372036854775808", "-9223372036854775808");
    row("M", "4096");
    row("half", "0.5");
    row(" M\t+ 1 ", "4097");
    row("1 + 2 * 3", "7");
    row("(1 + 2) * 3", "9");
    row("10 - 3 - 2", "5");
    row("100 / 7 / 2", "7");
    row("7 / 2", "3");
    row("-7 / 2", "-4");
    row("7 / -2", "-4");
    row("-7 / -2", "3");
    row("-8 / 2", "-4");
    row("7 % 3", "1");
    row("-7 % 3", "2");
    row("7 % -3", "-2");
    row("minus % -1", "0");
    row("7 % (-9223372036854775807 - 1)", "-9223372036854775801");
    row("-9223372036854775808 % -1", "0");
    row("7 / 2.0", "3.5");
    row("1 / half", "2.0");
    row("M * half", "2048.0");
    row("2 - -3", "5");
    row("--3", "3");
    row("1 < 2", "1");
    row("2 <= 1", "0");
    row("2 > 1", "1");
    row("2 >= 3", "0");
    row("M == 4096", "1");
    row("M != 4096", "0");
    row("1 == 1.0", "1");
    row("big == big - 1", "0");
    row("1 < 2 == 1", "1");
    row("1 + 1 == 2 && 3 > 2", "1");
    row("0 || 0", "0");
    row("0 || 7", "1");
    row("3 && 2", "1");
    row("1 || 0 && 0", "1");
    row("!0", "1");
    row("!M", "0");
    row("!!M", "1");
    row("half && 1", "1");
    row("M % 8 == 0", "1");
    row("1 ? 2 : 3", "2");
    row("0 ? 2 : 0 ? 3 : 4", "4");
    row("1 ? 0 ? 5 : 6 : 7", "6");
    row("zero == 0 ? 1 : M / zero", "1");
    row("zero != 0 && M / zero > 1", "0");
    row("1 || M / zero", "1");
    row("ceil_div(M, BM)", "32");
    row("ceil_div(N, 16)", "7");
    row("ceil_div(-7, 2)", "-3");
    row("ceil_div(0, 5)", "0");
    row("ceil_div(big, 2)", "4611686018427387904");
    row("round_up(N, 16)", "112");
    row("round_up(96, 16)", "96");
    row("round_up(-7, 4)", "-4");
    row("min(3, 2)", "2");
    row("max(3, 2, 9, 4)", "9");
    row("min(1, 2.5)", "1.0");
    row("max(M, half)", "4096.0");
    row("min(minus, zero)", "-7");
    row("abs(minus)", "7");
    row("abs(-2.5)", "2.5");
    row("sqrt(16)", "4.0");
    row("rsqrt(M)", "0.015625");
    row("log2(M)", "12.0");
    row("pow2_ceil(N)", "128");
    row("pow2_ceil(128)", "128");
    row("pow2_ceil(minus)", "1");
    row("3 * BM * 64 * 2 + ceil_div(M, BM) * (N > 64 ? 8 : 4)", "49408");
}

void TestExpression::values()
{
    QFETCH(QString, text);
    QFETCH(QString, value);
    const Result<Expression> expression = Expression::parse(text.toStdString());
    QVERIFY2(expression, expression ? "" : expression.error().message.c_str());
    QCOMPARE(QString::fromStdString(expression->text()), text);
    const Result<Value> result = expression->evaluate(bindings);
    QVERIFY2(result, result ? "" : result.error().message.c_str());
    QCOMPARE(shown(*result), value);
}

void TestExpression::failures_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char *text, const char *message) { QTest::newRow(text) << text << message; };
    row("M / zero", "column 3 of 'M / zero': division by zero.");
    row("M % zero", "column 3 of 'M % zero': division by zero.");
    row("1.0 / zero", "column 5 of '1.0 / zero': division by zero.");
    row("ceil_div(M, zero)", "column 1 of 'ceil_div(M, zero)': division by zero.");
    row("ceil_div(M, minus)",
        "column 1 of 'ceil_div(M, minus)': 'ceil_div' needs a positive divisor; got -7.");
    row("1 + round_up(M, half)", "column 5 of '1 + round_up(M, half)': 'round_up' needs whole numbers.");
    row("M % half", "column 3 of 'M % half': '%' needs whole numbers on both sides.");
    row("big + 1", "column 5 of 'big + 1': the result does not fit in 64 bits.");
    row("-big - 2", "column 6 of '-big - 2': the result does not fit in 64 bits.");
    row("big * 2", "column 5 of 'big * 2': the result does not fit in 64 bits.");
    row("-(-9223372036854775808)",
        "column 1 of '-(-9223372036854775808)': the result does not fit in 64 bits.");
    row("-9223372036854775808 / -1",
        "column 22 of '-9223372036854775808 / -1': the result does not fit in 64 bits.");
    row("abs(-9223372036854775808)",
        "column 1 of 'abs(-9223372036854775808)': the result does not fit in 64 bits.");
    row("round_up(big, 2)", "column 1 of 'round_up(big, 2)': the result does not fit in 64 bits.");
    row("pow2_ceil(big)", "column 1 of 'pow2_ceil(big)': the result does not fit in 64 bits.");
    row("1e308 * 10.0", "column 7 of '1e308 * 10.0': the result is not a finite number.");
    row("inf", "column 1 of 'inf': the result is not a finite number.");
    row("sqrt(minus)", "column 1 of 'sqrt(minus)': the square root of a negative number.");
    row("rsqrt(zero)", "column 1 of 'rsqrt(zero)': division by zero.");
    row("log2(0)", "column 1 of 'log2(0)': the logarithm of a number that is not positive.");
    row("BN + 1", "column 1 of 'BN + 1': the name 'BN' is unknown; did you mean 'BM'?");
}

void TestExpression::failures()
{
    QFETCH(QString, text);
    QFETCH(QString, message);
    const Result<Expression> expression = Expression::parse(text.toStdString());
    QVERIFY2(expression, expression ? "" : expression.error().message.c_str());
    const Result<Value> result = expression->evaluate(bindings);
    QVERIFY(!result);
    QCOMPARE(result.error().code, ErrorCode::InvalidInput);
    QCOMPARE(QString::fromStdString(result.error().message), message);
}

void TestExpression::syntaxErrors_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char *name, const QString &text, const QString &message) {
        QTest::newRow(name) << text << message;
    };
    row("empty", "", "column 1 of '': unexpected end; expected a number, a name or '('.");
    row("blank", "  ", "column 3 of '  ': unexpected end; expected a number, a name or '('.");
    row("open bracket", "(1 + 2", "column 7 of '(1 + 2': unexpected end; expected ')'.");
    row("closed bracket", "1)", "column 2 of '1)': unexpected ')'; expected an operator or the end.");
    row("two numbers", "1 2", "column 3 of '1 2': unexpected '2'; expected an operator or the end.");
    row("unit", "128B", "column 4 of '128B': unexpected 'B' after a number; expected an operator.");
    row("two points", "1.2.3", "column 4 of '1.2.3': unexpected '.' after a number; expected an operator.");
    row("exponent", "1e", "column 1 of '1e': this is no finite number.");
    row("large exponent", "1e999", "column 1 of '1e999': this is no finite number.");
    row("large integer", "9223372036854775808",
        "column 1 of '9223372036854775808': the integer does not fit in 64 bits.");
    row("assignment", "M = 1", "column 3 of 'M = 1': unexpected '='; expected an operator or the end.");
    row("half a choice", "M ? 1", "column 6 of 'M ? 1': unexpected end; expected ':'.");
    row("missing comma", "min(1 2)", "column 7 of 'min(1 2)': unexpected '2'; expected ',' or ')'.");
    row("too few", "min(1)", "column 1 of 'min(1)': 'min' takes 2 to 8 values; got 1.");
    row("too many", "sqrt(1, 2)", "column 1 of 'sqrt(1, 2)': 'sqrt' takes 1 values; got 2.");
    row("none", "abs()", "column 1 of 'abs()': 'abs' takes 1 values; got 0.");
    row("misspelt", "cel_div(1, 2)",
        "column 1 of 'cel_div(1, 2)': there is no function 'cel_div'; did you mean 'ceil_div'?");
    row("not ASCII", QString::fromUtf8("1 × 2"), QString());
    row("dangling operator", "1 +", "column 4 of '1 +': unexpected end; expected a number, a name or '('.");
    row("plus sign", "+1", "column 1 of '+1': unexpected '+'; expected a number, a name or '('.");
    row("too long", QString(1001, '1'), QString());
    row("too deep in brackets", QString(65, '(') + "1" + QString(65, ')'), QString());
    row("too deep in prefixes", QString(65, '!') + "1", QString());
    row("too deep in choices", QString("1?").repeated(65) + "1" + QString(":1").repeated(65), QString());
    row("too deep in calls", QString("abs(").repeated(65) + "1" + QString(")").repeated(65), QString());
}

void TestExpression::syntaxErrors()
{
    QFETCH(QString, text);
    QFETCH(QString, message);
    const Result<Expression> expression = Expression::parse(text.toStdString());
    QVERIFY(!expression);
    if (!message.isEmpty())
        QCOMPARE(QString::fromStdString(expression.error().message), message);
    QVERIFY(expression.error().message.starts_with("column "));
}

void TestExpression::wholeNumbers()
{
    const auto integer = [](const char *text) { return Expression::parse(text)->evaluateInteger(bindings); };
    QCOMPARE(integer("log2(M)").value(), std::int64_t{12});
    QCOMPARE(integer("M * half").value(), std::int64_t{2048});
    QVERIFY(!integer("N / 8.0"));
    QVERIFY(!integer("1e19"));
    QCOMPARE(integer("-9223372036854775808.0").value(), std::numeric_limits<std::int64_t>::min());
    QCOMPARE(Expression::parse("M / 3")->evaluateReal(bindings).value(), 1365.0);
    // Just inside the limits.
    QVERIFY(Expression::parse((QString(64, '(') + "1" + QString(64, ')')).toStdString()));
    const QString chain = "1" + QString("+1").repeated(499);
    QCOMPARE(Expression::parse(chain.toStdString())->evaluateInteger({}).value(), std::int64_t{500});
}

void TestExpression::namesAreCollected()
{
    const Expression expression = Expression::parse("M > 0 ? ceil_div(N, BM) + M : max(sm_count, 2)").value();
    QVERIFY((expression.names() == std::set<std::string>{"BM", "M", "N", "sm_count"}));
    QVERIFY(Expression::parse("1 + 2")->names().empty());
}

void TestExpression::constantsAndEquality()
{
    QCOMPARE(Expression().text(), std::string("0"));
    QCOMPARE(Expression(-5).text(), std::string("-5"));
    QCOMPARE(Expression(-5).evaluateInteger({}).value(), std::int64_t{-5});
    QVERIFY(Expression(4) == Expression::parse("4").value());
    QVERIFY(Expression::parse("4 ").value() != Expression(4));
}

void TestExpression::copiesShareNothingMutable()
{
    Expression copy;
    {
        const Expression original = Expression::parse("N + 1").value();
        copy = original;
    }
    QCOMPARE(copy.evaluateInteger(bindings).value(), std::int64_t{101});
    QCOMPARE(copy.evaluateInteger({{"N", std::int64_t{1}}}).value(), std::int64_t{2});
}

QTEST_GUILESS_MAIN(TestExpression)
#include "tst_expression.moc"
